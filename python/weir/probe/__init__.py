# SPDX-License-Identifier: Apache-2.0
"""What a file system can do, seen from this node: ``weir probe``."""
