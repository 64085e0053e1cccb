# SPDX-License-Identifier: Apache-2.0
"""Two runs beside each other: steps, files and routines that became faster or slower."""
