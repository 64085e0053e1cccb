// SPDX-License-Identifier: Apache-2.0
// A lock in memory that processes share, for holders that may be killed at any instruction: the word names its owner, and whoever
// waits looks now and then whether that process still lives. What it guards must be sound at every instruction (published by
// single stores), for the next owner gets it as the dead one left it.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

namespace weir::node {

// A process that cannot be mistaken for a later one of the same number.
struct Identity {
  uint32_t pid;
  uint32_t start;  // low bits of its start time, clock ticks since boot
  bool operator==(const Identity&) const = default;
};
// The calling process; after fork the child's. No system call but for the first time.
Identity self();
// In a forked child, before anything else of this room.
void forked();
// False when it has ended (a zombie has) or its number belongs to another. Costs a read of /proc when the number is in use.
bool alive(Identity who);

// Bits of the word: 22 pid, 9 start time, 1 somebody sleeps. 0: free.
struct Lock {
  uint32_t word;
};
uint32_t lock_word(Identity who);

// Waits until it has the lock. True: it was taken from a dead owner, whose work may be half done. The caller holds back its signals
// when handlers may come to the same lock.
bool acquire(Lock& lock);
// Tries once; false when somebody else (dead or alive) has it.
bool try_acquire(Lock& lock);
void release(Lock& lock);
// Frees the lock if that process has it: for who knows that it is dead.
bool release_of_dead(Lock& lock, Identity dead);

// Sleeps until the word is no longer `value`, at most so long; processes may share the word.
void sleep_on(uint32_t* word, uint32_t value, uint64_t at_most_ns);
void wake(uint32_t* word, int sleepers = 1 << 30);

}  // namespace weir::node
