// SPDX-License-Identifier: Apache-2.0
// Threads of the process that do I/O for the layers: reading ahead, writing behind, what is due
// later. They begin when there is work, hold back all signals, end but for the last one after
// kIdleNs without any, and are gone in a forked child, which begins anew.
//
// Their number follows the work: before a thread runs a job it makes sure that another one waits,
// up to kThreads; so the program's own threads never start more than the first one.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

namespace weir::pool {

inline constexpr uint32_t kThreads = 64;            // running jobs at once
inline constexpr uint64_t kIdleNs = 10'000'000'000;  // a thread without work ends
inline constexpr uint64_t kStackBytes = 256u << 10;

// One piece of work, in the caller's memory, which must stay until wait() has returned. Zeroed, it
// is idle. `run` may submit its own job again; it must not take what a waiter holds.
struct Job {
  void (*run)(Job*);
  Job* next;
  uint64_t due_ns;  // CLOCK_MONOTONIC; 0: at once
  uint32_t state;   // bits of JobState
};
enum JobState : uint32_t { kQueued = 1, kRunning = 2, kWaited = 4, kAgain = 8 };

// At start, while the affinity is still the launcher's: the threads will have it, whatever the
// submitting thread binds itself to.
void begin();

// Hands over an idle job (or, from within `run`, its own); one that is queued already stays as it
// is. Takes no lock: a signal handler may call it. False when there is no thread and none can be
// had: nothing has been done then, and the caller does the work itself. In a signal handler no
// thread begins.
bool submit(Job& job);
// Whether what is submitted will run although the caller does nothing more: there is a thread, or
// one has begun now.
bool ready();
// The same, not before delay_ns from now.
bool submit_after(Job& job, uint64_t delay_ns);

// Until the job is over. A job that is not due yet is waited for all the same: see hurry().
void wait(Job& job);
inline bool idle(const Job& job) { return base::load(&job.state) == 0; }
// Makes a delayed job due at once.
void hurry(Job& job);

// For tests: threads that exist.
uint32_t threads();

}  // namespace weir::pool
