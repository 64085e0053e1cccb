// SPDX-License-Identifier: Apache-2.0
// A layer that has no room for a file where it lies gives the program's descriptors another open
// file: one that has the same bytes and lies elsewhere.
#pragma once

#include "layers/machinery/stack/file.h"

namespace weir::stack {

// All numbers of the file name what `with` has open, with their own close-on-exec; `with` stays the
// caller's. No call of the program's that changes the file may be under way. Any thread.
void replace_descriptors(File* f, int with);

// Gives a file whose open file other processes have too (File::common) one of its own: before the
// kernel's position, status flags or locks of it are used. One open for it. Keeps errno.
void own_description(File* f);

// After a call of the kernel's own on the descriptor that failed for lack of space. True: it can be
// made once more. Keeps errno.
bool make_space(int fd);
// Before a shared mapping that writes (Kind::reserve). False: errno says why it cannot be made;
// else that is kept.
bool reserve(int fd, uint64_t at, uint64_t bytes);

}  // namespace weir::stack
