// SPDX-License-Identifier: Apache-2.0
// A section of weir's into which no signal handler of the program comes: none that would wait for
// a lock of its own thread, and none that leaves one held by a jump. While the program has no
// handler that a signal from elsewhere would call, no system call is needed for that: a count of
// the threads within is enough, for which whoever sets the first handler waits (before_handler()).
// From then on signals are held back, as SignalsBlocked does.
//
// Handlers of faults and of SIGABRT do not count: an instruction of the thread itself calls them,
// and what weir does within a section is not meant to.
#pragma once

#include <stdint.h>

#include "base/syscall.h"

namespace weir::base {

// 1: signals have to be held back. So at first, for nobody may look at calls that set handlers.
extern WEIR_OWN uint32_t handlers_may_come;
extern WEIR_OWN uint32_t sections_begun;  // by threads that hold back no signals
extern WEIR_OWN WEIR_THREAD uint32_t within_section;

// The calls that set handlers are seen from now on (before_handler()). Nothing changes where one
// was set before. Cost: a file of /proc is read.
WEIR_COLD void follow_handlers();
// Before a handler of that signal is set (0: before any thread may be cancelled), by whatever call.
// Waits until no thread is within a section, for a bounded time.
WEIR_COLD void before_handler(int signal);
// In a forked child: what the parent's other threads did.
inline void forget_sections() { base::store(&sections_begun, 0u); }

// False: the thread is in such a section already, or no system call may be made.
inline bool begin_section() {
  if (sealed() || (signals_blocked | within_section) != 0) return false;
  if (WEIR_LIKELY(base::load_relaxed(&handlers_may_come) == 0)) {
    base::fetch_add_all(&sections_begun, 1u);
    if (WEIR_LIKELY(base::load_all(&handlers_may_come) == 0)) {
      within_section = 1;
      return true;
    }
    base::fetch_add_all(&sections_begun, ~0u);
  }
  uint64_t before = 0;
  return begin_blocking_signals(&before);
}
inline void end_section() {
  if (within_section != 0) {
    within_section = 0;
    base::fetch_add_all(&sections_begun, ~0u);
  } else if (signals_blocked == 1) {
    end_blocking_signals(signals_before);
  }
}

// One within another, or within a SignalsBlocked, costs nothing.
class Section {
 public:
  Section() : begun_(begin_section()) {}
  ~Section() {
    if (begun_) end_section();
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

 private:
  const bool begun_;
};

// Within a section: as the program has its signals, for a call of the program's own that may wait.
class SignalsAsBefore {
 public:
  SignalsAsBefore() : ends_(!sealed() && (signals_blocked == 1 || within_section != 0)) {
    if (ends_) end_section();
  }
  ~SignalsAsBefore() {
    if (ends_) begin_section();
  }
  SignalsAsBefore(const SignalsAsBefore&) = delete;
  SignalsAsBefore& operator=(const SignalsAsBefore&) = delete;

 private:
  const bool ends_;
};

}  // namespace weir::base
