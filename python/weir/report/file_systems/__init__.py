# SPDX-License-Identifier: Apache-2.0
"""Totals by mounted file system."""
