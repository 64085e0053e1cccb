# SPDX-License-Identifier: Apache-2.0
"""What the layers did for each file: requests above and below them, their own statistics."""
