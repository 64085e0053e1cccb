// SPDX-License-Identifier: Apache-2.0
// Work with descriptors of weir's own beside a program that may close any number, and get that number for a file of its own.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

namespace weir::base {

// What the body finds in its table of descriptors: nothing, or copies of all that the program has open.
enum class Table : uint8_t { empty, copied };

// Calls body(what) where no other thread has the body's descriptors: in a moment's thread of the process with a table of its own, while the
// caller waits with its signals held back. In place, and with signals as they are, where the caller is all that runs of the program. The body must close what it opens,
// takes no lock that knows its owner, and finds its descriptors in /proc/self/task/<its id>/fd, not in /proc/self/fd. False: it was not called,
// as there can be no such thread for now. Never touches errno. Cost: some 50 us beside other threads.
WEIR_COLD bool run_apart(void (*body)(void*), void* what, Table table = Table::empty);

template <typename Body>
bool apart(Body body, Table table = Table::empty) {
  return run_apart([](void* with) { (*static_cast<Body*>(with))(); }, &body, table);
}

// Reads a whole small file (of /proc) into a buffer, zero-terminated, apart; bytes read, or -errno.
WEIR_COLD long read_file(const char* path, char* to, size_t size);

}  // namespace weir::base
