# SPDX-License-Identifier: Apache-2.0
"""Who waits for whose I/O. summary.synchronisation() makes everything of a step; account.py has the words, docs/guide/waits.md explains them."""
