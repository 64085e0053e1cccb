# SPDX-License-Identifier: Apache-2.0
"""Totals by file, under the name that each file had last; groups of alike files."""
