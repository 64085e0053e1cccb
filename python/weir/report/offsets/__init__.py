# SPDX-License-Identifier: Apache-2.0
"""Where in a file each rank reads and writes, and when: the plot of offset over time."""
