// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/credentials.h"
#include "base/section.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

namespace weir::base {

constinit uint32_t no_more_calls = 0;

WEIR_THREAD uint32_t signals_blocked;
WEIR_THREAD uint64_t signals_before;

constinit uint32_t handlers_may_come = 1;
constinit uint32_t sections_begun = 0;
WEIR_THREAD uint32_t within_section;

constinit uint32_t credential_changes = 1;

constinit uint32_t descriptors_held = 0;
constinit uint32_t held_in_vain = 0;
constinit uint32_t closing_numbers = 0;
WEIR_THREAD uint32_t holds_or_closes;

namespace {

// Gives the processor to others, a bounded number of times. An idle machine is back in some ms; on
// a busy one each time may take all the others' time slices, so there is a limit of time as well.
class Patience {
 public:
  bool yields() {
    if (count_ == kYields || (count_ % kLook == kLook - 1 && now_ns() - begun_ns_ > kLongestNs))
      return false;
    yield();
    ++count_;
    return true;
  }
  uint32_t count() const { return count_; }

 private:
  static constexpr uint32_t kYields = 20000, kLook = 16;
  static constexpr uint64_t kLongestNs = 2'000'000'000;
  uint64_t begun_ns_ = now_ns();
  uint32_t count_ = 0;
};

constinit uint32_t handler_was_set = 0;  // or a thread may be cancelled

// Signals whose handlers do not come into sections: of an instruction of the thread, of libc.
constexpr uint64_t kOfThread = kFaults | uint64_t{1} << (SIGABRT - 1) | kSignalsOfLibc;

// Whether the process has a handler of another signal by now; also where nobody can tell.
bool has_handler() {
  char about[4096];
  if (failed(read_file("/proc/self/status", about, sizeof about))) return true;
  const char* const line = strstr(about, "\nSigCgt:\t");
  if (line == nullptr) return true;
  uint64_t caught = 0;
  for (const char* at = line + strlen("\nSigCgt:\t"); *at != '\n' && *at != 0; ++at) {
    const int digit = *at <= '9' ? *at - '0' : *at - 'a' + 10;
    caught = caught << 4 | static_cast<uint64_t>(digit);
  }
  return (caught & ~kOfThread) != 0;
}

// Of a call that was left by a jump or a cancellation nobody is heard again: after the time limit
// it counts no more.
void drop_closing() {
  uint32_t number = base::load(&closing_numbers);
  while (number != 0 && !base::compare_exchange(&closing_numbers, &number, number - 1)) {}
}

}  // namespace

uint32_t wait_for_held() {
  Patience patience;
  while (any_held()) {
    if (patience.yields()) continue;
    store(&held_in_vain, load_all(&descriptors_held));
    break;
  }
  return patience.count();
}

void HoldsDescriptor::lower_held_in_vain() {
  uint32_t known = load(&held_in_vain);
  for (uint32_t held; known > (held = load_all(&descriptors_held));) {
    if (compare_exchange(&held_in_vain, &known, held)) return;
  }
}

void HoldsDescriptor::wait_for_closing() {
  Patience patience;
  for (bool goes_on = true; goes_on; goes_on = goes_on && patience.yields()) {
    base::fetch_add(&descriptors_held, ~0u);  // calls that close go first
    while (base::load(&closing_numbers) != 0 && (goes_on = patience.yields())) {}
    base::fetch_add_all(&descriptors_held, 1u);
    if (base::load_all(&closing_numbers) == 0) return;
  }
  drop_closing();
}

void ClosesNumbers::begin() {
  base::fetch_add_all(&closing_numbers, 1u);
  if (holds_or_closes++ == 0) wait_for_held();
}

void ClosesNumbers::end() {
  --holds_or_closes;
  drop_closing();
}

Acting acting(bool may_keep) {
  struct Known {
    Acting is;
    uint32_t changes;  // 0: not known
  };
  static WEIR_THREAD Known known;
  const uint32_t changes = load(&credential_changes);
  if (WEIR_LIKELY(known.changes == changes && changes != 0)) return known.is;
  const Acting is{static_cast<uint32_t>(system_call(SYS_geteuid)),
                  static_cast<uint32_t>(system_call(SYS_getegid))};
  if (may_keep) known = {is, changes};
  return is;
}

void follow_handlers() {
  if (load(&handler_was_set) != 0 || has_handler()) return;
  store(&handlers_may_come, 0u);
}

void before_handler(int signal) {
  const bool is_any = signal < 1 || signal > 64;
  if (!is_any && (uint64_t{1} << (signal - 1) & kOfThread) != 0) return;
  store(&handler_was_set, 1u);
  if (load_all(&handlers_may_come) == 0) fetch_add_all(&handlers_may_come, 1u);
  Patience patience;
  while (within_section == 0 && fetch_add_all(&sections_begun, 0u) != 0 && patience.yields()) {}
}

void say(int fd, const char* text, size_t n) {
  timespec at_once{0, 0};
  pollfd room{fd, POLLOUT, 0};
  if (system_call(SYS_ppoll, reinterpret_cast<long>(&room), 1, reinterpret_cast<long>(&at_once)) !=
      1)
    return;
  if ((room.revents & POLLOUT) == 0) return;
  const SignalsBlocked blocked;
  if (write_fd(fd, text, n) != -EPIPE) return;
  const uint64_t pipe = uint64_t{1} << (SIGPIPE - 1);
  system_call(SYS_rt_sigtimedwait, reinterpret_cast<long>(&pipe), 0,
              reinterpret_cast<long>(&at_once), sizeof pipe);
}

}  // namespace weir::base
