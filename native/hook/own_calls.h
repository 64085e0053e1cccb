// SPDX-License-Identifier: Apache-2.0
// Programs that make system calls by instructions of their own, as those in Rust whose libraries
// use rustix: hooks see their calls of the C library, and not these. A file that such a program has
// opened by the one and renames by the other would not be found where layers have it.
#pragma once

#include <stddef.h>

namespace weir::hook {

// Copies the path of the first object with such instructions for calls on files into `path`: the
// program ("" is its name there), or a library that it was loaded with. False: there is none. Only
// code that was made by compilers for Rust is looked at. To be called before there are threads;
// x86-64 alone (elsewhere: false).
bool makes_calls_on_files(char* path, size_t bytes);

}  // namespace weir::hook
