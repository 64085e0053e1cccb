// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/node/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/apart.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/syscall.h"

namespace weir::node {
namespace {

constexpr uint32_t kPidBits = 22;
constexpr uint32_t kPidMask = (1u << kPidBits) - 1;
constexpr uint32_t kStartMask = 0x1ff;
constexpr uint32_t kSleepers = 1u << 31;
// How long a waiter sleeps before it looks whether the owner lives.
constexpr uint64_t kLookAfterNs = 20'000'000;

WEIR_THREAD uint32_t own_word = 0;  // of this thread, or 0

// Locks of this thread that a jump may leave: a slot's, those of its blocks, a set's.
constexpr uint32_t kMostHeld = 72;
struct Held {
  uint32_t count;
  Lock* locks[kMostHeld];
};
WEIR_THREAD Held held{};

// Owners that were waited for in vain. The word is 0 again when the lock has been had.
struct Stuck {
  const Lock* lock;
  uint32_t word;
};
constinit Stuck stuck[16] = {};
constinit uint64_t wait_ns = kLockWaitNs;

enum class Owner { kGone, kStopped, kRuns };

// The owner is known by 9 bits of its start time alone; by none where it could not read them. Its
// namespace is not in the word.
Owner owner_here(uint32_t word) {
  const uint32_t thread = word & kPidMask, begun = word >> kPidBits & kStartMask;
  const auto is_there = [=] { return base::system_call(SYS_tkill, thread, 0) != -ESRCH; };
  uint32_t start = 0;
  char state = 0;
  uint64_t threads = 0;
  if (!is_there()) return Owner::kGone;
  if (!base::read_about(thread, &start, &state, &threads)) {
    return is_there() ? Owner::kRuns : Owner::kGone;  // as read_start()
  }
  if (state == 'X' || state == 'Z') return Owner::kGone;
  if (begun != 0 && (start & kStartMask) != begun) return Owner::kGone;
  return state == 'T' || state == 't' ? Owner::kStopped : Owner::kRuns;
}

// Of a lock that processes share: where some are of another namespace nobody can tell that the
// owner has ended.
Owner owner_of(uint32_t word) {
  const Owner owner = owner_here(word);
  return owner != Owner::kRuns && base::is_shared_with_foreign() ? Owner::kRuns : owner;
}

uint32_t this_thread() {
  if (WEIR_UNLIKELY(own_word == 0)) {
    const auto thread = static_cast<uint32_t>(base::thread_id());
    uint32_t start = 0;
    char state = 0;
    uint64_t threads = 0;
    const base::SignalsBlocked blocked;
    base::read_about(thread, &start, &state, &threads);
    own_word = (thread & kPidMask) | (start & kStartMask) << kPidBits;
  }
  return own_word;
}

// Another start time than this one, and none that is unknown (0).
uint32_t other_start(uint32_t begun) {
  return begun == kStartMask ? kStartMask >> 1 : begun ^ kStartMask;
}

Stuck& stuck_at(const Lock& lock) {
  return stuck[reinterpret_cast<uintptr_t>(&lock) / 64 % (sizeof stuck / sizeof stuck[0])];
}
bool known_as_stuck(const Lock& lock, uint32_t word) {
  const Stuck& at = stuck_at(lock);
  return base::load_relaxed(&at.lock) == &lock &&
         base::load_relaxed(&at.word) == (word & ~kSleepers);
}
void remember_stuck(const Lock& lock, uint32_t word) {
  base::store_relaxed(&stuck_at(lock).word, word & ~kSleepers);
  base::store_relaxed(&stuck_at(lock).lock, &lock);
}

// Before the lock is taken, and note_released() after it was let go: a jump between the two leaves
// it in the list.
void note_held(Lock& lock) {
  if (held.count >= kMostHeld) return;
  held.locks[held.count] = &lock;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  base::store_relaxed(&held.count, held.count + 1);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
void note_released(const Lock& lock) {
  for (uint32_t i = held.count; i-- > 0;) {
    if (held.locks[i] != &lock) continue;
    held.locks[i] = held.locks[held.count - 1];
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    base::store_relaxed(&held.count, held.count - 1);
    return;
  }
}

bool had_at_once(Lock& lock, uint32_t me) {
  uint32_t seen = 0;
  if (WEIR_LIKELY(base::compare_exchange(&lock.word, &seen, me))) return true;
  for (int tries = 0; tries < 10; ++tries) {
    base::yield();
    seen = 0;
    if (base::load_relaxed(&lock.word) == 0 && base::compare_exchange(&lock.word, &seen, me))
      return true;
  }
  return false;
}

// bounded: gives up a living owner.
Taken wait_for(Lock& lock, uint32_t me, bool bounded, const uint32_t* progress = nullptr) {
  uint64_t begun = 0;
  uint32_t waited_for = 0, seen_progress = 0;
  // Who has slept takes the lock as one with sleepers: others may still sleep.
  for (;;) {
    uint32_t seen = base::load(&lock.word);
    if (seen == 0) {
      if (base::compare_exchange(&lock.word, &seen, me | kSleepers)) return Taken::kFree;
      continue;
    }
    if ((seen & ~kSleepers) == me) return Taken::kFree;  // revoked and given back meanwhile
    const bool again = bounded && known_as_stuck(lock, seen);
    if (!again) {
      if ((seen & kSleepers) == 0 && !base::compare_exchange(&lock.word, &seen, seen | kSleepers))
        continue;
      seen |= kSleepers;
      const uint32_t now = progress != nullptr ? base::load(progress) : 0;
      if ((waited_for | kSleepers) != seen || now != seen_progress) begun = base::now_ns();
      waited_for = seen;
      seen_progress = now;
      sleep_on(&lock.word, seen, kLookAfterNs);
      if (base::load(&lock.word) != seen) continue;
      if (progress != nullptr && base::load(progress) != now) continue;
    }
    const Owner owner = bounded ? owner_of(seen) : owner_here(seen);
    if (owner == Owner::kGone) {
      if (base::compare_exchange(&lock.word, &seen, me | kSleepers)) return Taken::kFromDead;
      continue;
    }
    if (!bounded) continue;
    const uint64_t most = base::load_relaxed(&wait_ns),
                   limit =
                       owner == Owner::kStopped && most > kStoppedWaitNs ? kStoppedWaitNs : most;
    if (!again && base::now_ns() - begun < limit) continue;
    remember_stuck(lock, seen);
    return Taken::kNot;
  }
}

}  // namespace

void read_lock_wait() {
  int64_t ms = 0;
  const char* text = getenv("WEIR_LOCK_WAIT_MS");
  if (text != nullptr && base::parse_number(base::text(text), &ms) && ms > 0)
    base::store_relaxed(&wait_ns, static_cast<uint64_t>(ms) * 1'000'000);
}

void forked() {
  base::forget_process();
  own_word = 0;
  held.count = 0;
}

void sleep_on(uint32_t* word, uint32_t value, uint64_t at_most_ns) {
  base::futex_wait(word, value, at_most_ns == 0 ? 1 : at_most_ns, base::Word::kShared);
}

void wake(uint32_t* word, int sleepers) { base::futex_wake(word, sleepers, base::Word::kShared); }

bool try_acquire(Lock& lock) {
  uint32_t free = 0;
  const uint32_t me = this_thread();
  note_held(lock);
  if (base::compare_exchange(&lock.word, &free, me)) return true;
  note_released(lock);
  return false;
}

Taken take(Lock& lock, const uint32_t* progress) {
  const uint32_t me = this_thread();
  note_held(lock);
  const Taken taken =
      WEIR_LIKELY(had_at_once(lock, me)) ? Taken::kFree : wait_for(lock, me, true, progress);
  if (taken == Taken::kNot) note_released(lock);
  return taken;
}

bool acquire(Lock& lock) {
  const uint32_t me = this_thread();
  return !had_at_once(lock, me) && wait_for(lock, me, false) == Taken::kFromDead;
}

bool is_mine(const Lock& lock) { return (base::load(&lock.word) & ~kSleepers) == this_thread(); }

bool release(Lock& lock) {
  const uint32_t me = this_thread();
  uint32_t seen = me;
  while (!base::compare_exchange(&lock.word, &seen, 0u) && (seen & ~kSleepers) == me) {}
  note_released(lock);
  if ((seen & ~kSleepers) != me) return false;
  if (WEIR_UNLIKELY((seen & kSleepers) != 0)) wake(&lock.word, 1);
  return true;
}

uint32_t revoke(Lock& lock) {
  uint32_t seen = base::load(&lock.word);
  const uint32_t me = this_thread();
  if (seen == 0 || !known_as_stuck(lock, seen)) return 0;
  note_held(lock);
  if (base::compare_exchange(&lock.word, &seen, me | kSleepers)) return seen & ~kSleepers;
  note_released(lock);
  return 0;
}

bool revoked_lives(uint32_t owner) { return owner_of(owner) != Owner::kGone; }

uint32_t owner_word() { return this_thread(); }

void give_back(Lock& lock, uint32_t owner) {
  uint32_t seen = base::load(&lock.word);
  while (!base::compare_exchange(&lock.word, &seen, owner | kSleepers)) {}
  note_released(lock);
}

bool owner_is_stopped(const Lock& lock) {
  const uint32_t seen = base::load(&lock.word);
  return seen != 0 && owner_of(seen) == Owner::kStopped;
}

void forfeit_held() {
  const uint32_t me = this_thread();
  while (held.count > 0) {
    Lock& lock = *held.locks[--held.count];
    uint32_t seen = base::load(&lock.word);
    const uint32_t dead = (me & kPidMask) | other_start(me >> kPidBits) << kPidBits;
    while ((seen & ~kSleepers) == me &&
           !base::compare_exchange(&lock.word, &seen, dead | (seen & kSleepers))) {
    }
    wake(&lock.word, 1);
  }
}

bool release_if_dead(Lock& lock) {
  uint32_t seen = base::load(&lock.word);
  if (seen == 0 || owner_of(seen) != Owner::kGone || !base::compare_exchange(&lock.word, &seen, 0u))
    return false;
  wake(&lock.word, 1);
  return true;
}

}  // namespace weir::node
