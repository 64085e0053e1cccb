// SPDX-License-Identifier: Apache-2.0
// Threads of weir in the program's process. They take none of the program's signals, and all of
// glibc's own.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

namespace weir::base {

// Starts a detached thread whose body must begin with begin_thread(). A program with much
// thread-local memory has it on each stack: larger ones than stack_bytes are tried where that does
// not do. False: there can be none, or a signal handler may be among the callers: it may have
// interrupted the program's malloc, or its starting of a thread, and both are part of starting one.
WEIR_COLD bool start_thread(void* (*body)(void*), size_t stack_bytes);

// Threads of weir's that run in this process, and a forked child's view: none.
// Threads: any, and signal handlers. Cost: a load.
uint32_t own_threads();
void forget_threads();
// Before a child is made as a copy of this process. Of one that was made by a bare fork libc
// believes that the parent's threads are there: it would wait for ever for one that was just
// beginning, when the child changes its user or group. Waits 1 s at most.
void wait_for_beginning();
// Whether the thread that asks and threads of weir's are all that runs of the process.
WEIR_COLD bool only_own_threads_besides_this();
// For a thread of weir's: ends the process, as libc does with its last thread, when main() has left
// by pthread_exit and the program's other threads have ended. libc counts weir's, and would wait
// for ever.
WEIR_COLD void end_process_without_program();

// name: as /proc and debuggers show it, at most 15 bytes.
WEIR_COLD void begin_thread(const char* name);
// Whether the calling thread has begun so.
WEIR_COLD bool in_own_thread();

}  // namespace weir::base
