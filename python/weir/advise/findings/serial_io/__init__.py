# SPDX-License-Identifier: Apache-2.0
"""Finding serial-io."""
