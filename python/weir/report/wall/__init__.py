# SPDX-License-Identifier: Apache-2.0
"""What each rank does with its wall time: it computes, is in I/O, waits, or communicates."""
