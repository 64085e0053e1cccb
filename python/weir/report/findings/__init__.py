# SPDX-License-Identifier: Apache-2.0
"""Findings: what in the I/O of a run deserves attention. Each is a module with one declaration."""
