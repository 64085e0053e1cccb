# SPDX-License-Identifier: Apache-2.0
"""The processes of a run, and what the kernel counted of them that no record has."""
