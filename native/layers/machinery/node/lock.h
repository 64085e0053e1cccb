// SPDX-License-Identifier: Apache-2.0
// A lock in memory that processes share, for holders that may be killed or stopped at any
// instruction: the word names its owner, and whoever waits looks now and then whether that thread
// still lives. What it guards must be sound at every instruction (published by single stores), for
// the next owner gets it as the dead one left it. Nobody waits for a living owner for longer than a
// bound.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/process.h"

namespace weir::node {

using Identity = base::ProcessIdentity;
using base::alive;
using base::Foreign;
using base::is_foreign;
using base::Life;
using base::on_foreign;
using base::own_namespace;
using base::runs;
using base::sees_all_processes;
using base::self;
using base::start_of;
// In a forked child, before anything else of this room.
void forked();

// Bits of the word: 22 thread, 9 of its start time, 1 somebody sleeps. 0: free. The owner is a
// thread: one that was cancelled is dead while its process lives.
struct Lock {
  uint32_t word;
};

enum class Taken : uint8_t {
  kFree,
  kFromDead,  // its owner has died, and its work may be half done
  kNot,       // its owner lives and did not let it go within the bound: what it guards has to be
              // bypassed
};
// For how long the same living owner is waited for (WEIR_LOCK_WAIT_MS, 1 s), and how long for one
// that is stopped, at most.
inline constexpr uint64_t kLockWaitNs = 1'000'000'000, kStoppedWaitNs = 100'000'000;
// Reads it once, when the library is loaded: a lock may be waited for in a handler, or while the
// program changes its environment.
void read_lock_wait();

// Waits for the lock. The caller holds back its signals when handlers may come to the same lock.
// Once an owner was waited for in vain it is not waited for again until it lets go. progress: a
// word that the owner changes while it goes on; the bound is then counted from its last change.
[[nodiscard]] Taken take(Lock& lock, const uint32_t* progress = nullptr);
// The same for a lock that is in this process alone, and without a bound while its owner lives.
// True: it was taken from a dead one.
bool acquire(Lock& lock);
// Tries once; false when somebody else (dead or alive) has it.
bool try_acquire(Lock& lock);
// False: it was revoked meanwhile, and what was done since may have been done in vain.
bool release(Lock& lock);
bool is_mine(const Lock& lock);

// After take() gave kNot: the lock is this thread's, whatever its owner does when it goes on
// (release() tells it). The former owner as revoked_lives() knows it; 0: the lock has changed
// hands, nothing was done.
uint32_t revoke(Lock& lock);
bool revoked_lives(uint32_t owner);
// As if nothing had been done.
void give_back(Lock& lock, uint32_t owner);
// This thread, as a revoked owner is known.
uint32_t owner_word();
// Whether the owner is stopped by a signal or a debugger.
bool owner_is_stopped(const Lock& lock);
// All locks that this thread has, except those of the process alone: the call that took them was
// left by a jump. Whoever takes them next finds a dead owner.
void forfeit_held();

// Frees the lock if its owner is dead.
bool release_if_dead(Lock& lock);

// Sleeps until the word is no longer `value`, at most so long; processes may share the word.
void sleep_on(uint32_t* word, uint32_t value, uint64_t at_most_ns);
void wake(uint32_t* word, int sleepers = 1 << 30);

}  // namespace weir::node
