# SPDX-License-Identifier: Apache-2.0
"""Findings with a cure. Each is a module with one declaration; registry.py lists them."""
