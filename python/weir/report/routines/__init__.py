# SPDX-License-Identifier: Apache-2.0
"""Totals by routine, of the run and of each file."""
