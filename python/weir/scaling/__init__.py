# SPDX-License-Identifier: Apache-2.0
"""Runs with different numbers of ranks: how their times scale, and what will not."""
