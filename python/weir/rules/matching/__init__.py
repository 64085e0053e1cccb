# SPDX-License-Identifier: Apache-2.0
"""Which rule a file gets, as native/layers/machinery/rules decides it: patterns, conditions, and
the explanation for people."""
