# SPDX-License-Identifier: Apache-2.0
"""Files that Fortran units opened."""
