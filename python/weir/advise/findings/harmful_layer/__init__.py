# SPDX-License-Identifier: Apache-2.0
"""Finding harmful-layer."""
