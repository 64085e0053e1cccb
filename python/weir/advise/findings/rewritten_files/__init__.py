# SPDX-License-Identifier: Apache-2.0
"""Finding rewritten-files."""
