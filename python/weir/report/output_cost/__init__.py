# SPDX-License-Identifier: Apache-2.0
"""What output costs as a whole: gathering, packing, libraries and system calls, file by file."""
