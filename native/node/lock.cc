// SPDX-License-Identifier: Apache-2.0
#include "node/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "os/syscall.h"

namespace weir::node {
namespace {

constexpr uint32_t kPidBits = 22;
constexpr uint32_t kPidMask = (1u << kPidBits) - 1;
constexpr uint32_t kStartMask = 0x1ff;
constexpr uint32_t kSleepers = 1u << 31;
constexpr uint64_t kLookAfterNs = 20'000'000;  // how long a waiter sleeps before it looks whether the owner lives

constinit uint64_t own = 0;  // Identity of this process, or 0

// A number of /proc/<pid>/stat; `at` is the parenthesis that ends field 2.
uint64_t field(const char* at, int number) {
  for (int i = 2; i < number; ++i) {
    at = strchr(at + 1, ' ');
    if (at == nullptr) return 0;
  }
  uint64_t value = 0;
  for (++at; *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<uint64_t>(*at - '0');
  return value;
}

// Start time of a process. The name in field 2 may have blanks and parentheses. False: no such process, or it has ended.
bool read_start(uint32_t pid, uint32_t* start) {
  char path[32], text[512];
  base::Writer(path, sizeof path).add("/proc/").add_number(pid).add("/stat");
  const long n = os::read_file(path, text, sizeof text);
  if (n <= 0) return false;
  const char* at = strrchr(text, ')');
  if (at == nullptr || at[1] == 0) return false;
  const char state = at[2];
  // A program may end its first thread alone: that one is then a zombie among living threads.
  if (state == 'X' || (state == 'Z' && field(at, 20) <= 1)) return false;
  *start = static_cast<uint32_t>(field(at, 22));
  return true;
}

// The owner is known by 9 bits of its start time alone.
bool owner_lives(uint32_t word) {
  const uint32_t pid = word & kPidMask;
  if (os::system_call(SYS_kill, pid, 0) == -ESRCH) return false;
  if (self().start == 0) return true;  // no /proc: the number is all there is
  uint32_t start = 0;
  return read_start(pid, &start) && (start & kStartMask) == (word >> kPidBits & kStartMask);
}

}  // namespace

Identity self() {
  uint64_t known = base::load(&own);
  if (WEIR_UNLIKELY(known == 0)) {
    const os::SignalsBlocked blocked;
    const auto pid = static_cast<uint32_t>(os::process_id());
    uint32_t start = 0;
    read_start(pid, &start);
    known = uint64_t{start} << 32 | pid;
    base::store(&own, known);
  }
  return {static_cast<uint32_t>(known), static_cast<uint32_t>(known >> 32)};
}

void forked() { base::store(&own, uint64_t{0}); }

bool alive(Identity who) {
  if (who.pid == 0 || os::system_call(SYS_kill, who.pid, 0) == -ESRCH) return false;
  if (self().start == 0) return true;
  uint32_t start = 0;
  return read_start(who.pid, &start) && start == who.start;
}

uint32_t lock_word(Identity who) { return (who.pid & kPidMask) | (who.start & kStartMask) << kPidBits; }

void sleep_on(uint32_t* word, uint32_t value, uint64_t at_most_ns) {
  timespec time{static_cast<time_t>(at_most_ns / 1'000'000'000), static_cast<long>(at_most_ns % 1'000'000'000)};
  os::system_call(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAIT, value, reinterpret_cast<long>(&time));
}

void wake(uint32_t* word, int sleepers) { os::system_call(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE, sleepers); }

bool try_acquire(Lock& lock) {
  uint32_t free = 0;
  return base::compare_exchange(&lock.word, &free, lock_word(self()));
}

bool acquire(Lock& lock) {
  const uint32_t me = lock_word(self());
  uint32_t seen = 0;
  if (WEIR_LIKELY(base::compare_exchange(&lock.word, &seen, me))) return false;
  for (int tries = 0; tries < 10; ++tries) {
    os::yield();
    seen = 0;
    if (base::load_relaxed(&lock.word) == 0 && base::compare_exchange(&lock.word, &seen, me)) return false;
  }
  // Who has slept takes the lock as one with sleepers: others may still sleep.
  for (;;) {
    seen = base::load(&lock.word);
    if (seen == 0) {
      if (base::compare_exchange(&lock.word, &seen, me | kSleepers)) return false;
      continue;
    }
    if ((seen & kSleepers) == 0 && !base::compare_exchange(&lock.word, &seen, seen | kSleepers)) continue;
    seen |= kSleepers;
    sleep_on(&lock.word, seen, kLookAfterNs);
    if (base::load(&lock.word) == seen && !owner_lives(seen) && base::compare_exchange(&lock.word, &seen, me | kSleepers)) return true;
  }
}

void release(Lock& lock) {
  if (WEIR_UNLIKELY((base::exchange(&lock.word, 0u) & kSleepers) != 0)) wake(&lock.word, 1);
}

bool release_of_dead(Lock& lock, Identity dead) {
  uint32_t seen = base::load(&lock.word);
  if (seen == 0 || (seen & ~kSleepers) != lock_word(dead)) return false;
  if (!base::compare_exchange(&lock.word, &seen, 0u)) return false;
  wake(&lock.word, 1);
  return true;
}

}  // namespace weir::node
