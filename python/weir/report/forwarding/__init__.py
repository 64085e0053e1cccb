# SPDX-License-Identifier: Apache-2.0
"""Which ranks of a node do I/O, and how much of it on behalf of others: forwarding."""
