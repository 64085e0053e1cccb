# SPDX-License-Identifier: Apache-2.0
"""Runs suites that others wrote plain and with weir, compares the results and writes the table of
docs/validation."""
