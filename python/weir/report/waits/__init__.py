# SPDX-License-Identifier: Apache-2.0
"""Waits for I/O in MPI, their costs, and phases."""
