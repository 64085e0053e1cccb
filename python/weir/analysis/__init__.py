# SPDX-License-Identifier: Apache-2.0
"""What the records of a run mean: clocks, totals, active time, and every table, as plain data.
Printing is left to report."""
