# SPDX-License-Identifier: Apache-2.0
"""What each rank did over time."""
