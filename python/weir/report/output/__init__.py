# SPDX-License-Identifier: Apache-2.0
"""What libweir's output cost, and who delayed it."""
