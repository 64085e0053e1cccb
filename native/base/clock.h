// SPDX-License-Identifier: Apache-2.0
// The trace clock: the CPU's time-stamp counter where it runs at one rate through all states, else
// CLOCK_MONOTONIC in ns.
#pragma once

#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "base/compiler.h"

namespace weir::base {

struct ClockState {
  bool counter;       // the time-stamp counter is the trace clock
  int64_t skew_ns;    // added to what a node says of its clocks: fault injection for tests of the
                      // alignment, else 0
  // The kernel's own function (vdso(7)): a preloaded library may define a clock_gettime that gives
  // other times. Null: libc's.
  int (*read)(clockid_t, timespec*);
};
// Set once, when the library is loaded, before anything is recorded.
extern WEIR_OWN ClockState clock_state;

inline uint64_t clock_ns(clockid_t id) {
  timespec t;
  if (WEIR_LIKELY(clock_state.read != nullptr)) clock_state.read(id, &t);
  else clock_gettime(id, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

// For spans of time: it goes on at one rate, whatever sets the clock.
inline uint64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }
// The same of the kernel's last tick, some ms old.
inline uint64_t recent_ns() { return clock_ns(CLOCK_MONOTONIC_COARSE); }

// Now, by the trace clock. Threads: any, and signal handlers. Cost: an instruction of some 10 ns,
// or, without such a counter, clock_gettime of the vDSO.
inline uint64_t ticks() {
#if defined(__x86_64__)
  if (WEIR_LIKELY(clock_state.counter)) return __rdtsc();
#endif
  return now_ns();
}

// True when the CPU says that its time-stamp counter is invariant (CPUID 8000_0007h, EDX bit 8;
// Intel SDM vol. 3, 18.17.1).
inline bool counter_is_invariant() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)) != 0;
#else
  return false;
#endif
}

// One reading of three clocks, as close together as five tries get them.
struct ClockReading {
  uint64_t ticks, mono_ns, realtime_ns;
};
// Threads: any, and signal handlers. Never fails. Cost: some twenty readings of clocks.
ClockReading read_clocks();

}  // namespace weir::base
