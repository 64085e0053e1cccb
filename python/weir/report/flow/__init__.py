# SPDX-License-Identifier: Apache-2.0
"""Data that passes from step to step through files, and what is read again."""
