// SPDX-License-Identifier: Apache-2.0
// Work that must not show in the program's table of descriptors.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

namespace weir::base {

// Calls body(what). In a thread of weir's own that is done with an empty table of descriptors,
// while the thread waits: a program's open() in another thread would otherwise get the next number.
// The body has no descriptors of the program's and must close what it opens; its /proc/self is
// another. It runs once, before this returns. In a thread of the program, where a process may not
// be made, once system calls are filtered, and under valgrind, it runs in the table itself.
// Threads: any. Cost: a call; in a thread of weir's a clone and a wait4.
WEIR_COLD void run_apart(void (*body)(void*), void* what);

// What weir itself read and wrote by calls that no trace has and that the kernel counts as the
// process' own: since the recorder last took these counts.
extern WEIR_OWN uint64_t own_bytes_read, own_bytes_written;
// As read_file(), apart. Not for files below /proc/self.
WEIR_COLD long read_file_apart(const char* path, char* to, size_t size);
// As read_file("/proc/self/" name), apart where the process may be seen by others than itself.
WEIR_COLD long read_of_process_apart(const char* name, char* to, size_t size);

}  // namespace weir::base
