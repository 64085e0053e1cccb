# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all Python tests, wherever they lie; what they do is in
tests/support/weir_fixtures.py."""

pytest_plugins = ("weir_fixtures",)
