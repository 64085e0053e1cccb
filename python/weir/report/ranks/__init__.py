# SPDX-License-Identifier: Apache-2.0
"""What did each rank do? One line a rank, over all its processes and files."""
