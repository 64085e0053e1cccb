# SPDX-License-Identifier: Apache-2.0
"""Striped files (layer stripe): their index, and joining them into plain ones. Form:
native/layers/stripe/README.md."""

from weir.stripe.join import Striped, join, read_index

__all__ = ["Striped", "join", "read_index"]
