# SPDX-License-Identifier: Apache-2.0
"""The steps of a run, one line each."""
