// SPDX-License-Identifier: Apache-2.0
// WEIR_CLONES: a function that is compiled for processors with AVX2 and BMI2, and for all others;
// which of them is called is chosen when the library is loaded. WEIR_WIDE_CLONES: for those with
// AVX-512 too, for loops that do the same with each value. What it calls is compiled with it only
// where it is WEIR_INLINE, or a lambda that is WEIR_ALWAYS inline.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WEIR_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#define WEIR_WIDE_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WEIR_CLONES
#define WEIR_WIDE_CLONES
#endif
#define WEIR_ALWAYS __attribute__((always_inline))
#define WEIR_INLINE inline WEIR_ALWAYS
