// SPDX-License-Identifier: Apache-2.0
// Words for the compiler that every room of the preload library uses.
#pragma once

#define WEIR_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEIR_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WEIR_COLD __attribute__((noinline, cold))

// Thread-local storage of trivial type; the library is built with the initial-exec model, so this is one instruction.
#define WEIR_THREAD __thread
