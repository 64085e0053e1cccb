# SPDX-License-Identifier: Apache-2.0
"""Sizes and durations of the requests, as histograms."""
