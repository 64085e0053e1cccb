# SPDX-License-Identifier: Apache-2.0
"""What findings stand on: the facts of a run, the model of savings, how one is declared."""
