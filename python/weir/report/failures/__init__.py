# SPDX-License-Identifier: Apache-2.0
"""Calls that failed and usually do not: a write to a full disk, a file that may not be written."""
