# SPDX-License-Identifier: Apache-2.0
"""How ranks access files: in order, with strides or at random; sizes, alignment, switches."""
