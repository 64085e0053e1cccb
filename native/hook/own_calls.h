// SPDX-License-Identifier: Apache-2.0
// Programs that make system calls by instructions of their own, as those in Rust whose libraries
// use rustix: hooks see their calls of the C library, and not these. A file that such a program has
// opened by the one and renames by the other would not be found where layers have it.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace weir::hook {

// Whether code has instructions for a system call that changes or looks at files by name, or at
// their sizes and contents: its number is loaded at most 64 bytes before it, or is an argument.
bool has_calls_on_files(const uint8_t* code, size_t bytes);

// Copies the path of the first such object into `path`: the program ("" is its name there), or a
// library that it was loaded with. False: there is none. Only code that was made by compilers for
// Rust is looked at. To be called before there are threads; x86-64 alone (elsewhere: false).
bool makes_calls_on_files(char* path, size_t bytes);

}  // namespace weir::hook
