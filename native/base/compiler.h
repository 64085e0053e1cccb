// SPDX-License-Identifier: Apache-2.0
// Words for the compiler that every room of the preload library uses.
#pragma once

#define WEIR_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEIR_UNLIKELY(x) __builtin_expect(!!(x), 0)
// Off the usual path. Not the attribute `cold`: gcc 12 takes what lies between two calls of cold
// functions for cold, too.
#define WEIR_COLD __attribute__((noinline))
// At the declaration of a variable: it is this library's own, so no table stands between it and the
// code.
#define WEIR_OWN __attribute__((visibility("hidden")))
// For the path that every recorded call takes.
#define WEIR_INLINE inline __attribute__((always_inline))

// Thread-local storage of trivial type; the library is built with the initial-exec model, so this
// is one instruction.
#define WEIR_THREAD __thread
