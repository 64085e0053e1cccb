# SPDX-License-Identifier: Apache-2.0
"""What costs in a run, what cures it, and what the cure would save: ``weir advise``."""
