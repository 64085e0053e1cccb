// SPDX-License-Identifier: Apache-2.0
// Which process is meant, and whether it still runs: a number alone may belong to a later process,
// or to one of another PID namespace.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

namespace weir::base {

// A process that cannot be mistaken for a later one of the same number, nor for one of the same
// number in another PID namespace.
struct ProcessIdentity {
  uint32_t pid;    // as the process sees it itself
  uint32_t start;  // 18 low bits of its start time, clock ticks since boot; above them 14 of its
                   // PID namespace's inode; 0: unknown
  bool operator==(const ProcessIdentity&) const = default;
};
// The calling process; after fork the child's. No system call but for the first time.
ProcessIdentity self();
// In a forked child, before anything else of this header.
void forget_process();
// When that process of this PID namespace started, as above, a zombie, too; 0: it is not there.
uint32_t start_of(uint32_t pid);
// False when it has ended (a zombie has) or its number belongs to another. Costs looks into /proc
// when the number is in use. One of another PID namespace has no number here: on_foreign() resolves
// it, and without an answer it is alive.
bool alive(ProcessIdentity who);
// Whether it is of another PID namespace: no call with its number concerns it.
bool is_foreign(ProcessIdentity who);
// Inode of this process' PID namespace; 0: unknown.
uint64_t own_namespace();
// Whether this process sees all of the machine: it is in the first PID namespace.
bool sees_all_processes();

// Answers for processes of other PID namespaces. is_shared: some have been here, so that a thread
// without a number here may live.
enum class Life : uint8_t { kAlive, kEnded, kUnknown };
struct Foreign {
  Life (*life_of)(ProcessIdentity who);
  bool (*is_shared)();
};
void on_foreign(const Foreign& answers);
// Whether a process of that number runs, whichever; a zombie does not.
bool runs(uint32_t pid);
bool is_shared_with_foreign();
// Start time (all of /proc's clock ticks but the bits above 32) and state of a process or a thread,
// and the number of its threads. False: there is none, or /proc does not show it.
bool read_about(uint32_t id, uint32_t* start, char* state, uint64_t* threads);

}  // namespace weir::base
