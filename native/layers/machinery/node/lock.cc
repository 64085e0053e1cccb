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
constexpr uint64_t kLookAfterNs = 20'000'000;  // how long a waiter sleeps before it looks whether the owner lives

constexpr uint32_t kTickBits = 18, kTickMask = (1u << kTickBits) - 1;  // of Identity::start
constexpr uint64_t kFirstNamespace = 0xeffffffc;                       // PROC_PID_INIT_INO of Linux

constinit uint64_t own = 0;  // Identity of this process, or 0
constinit uint64_t name_space = 0;  // inode; kNone: unknown; 0: not looked yet
constexpr uint64_t kNone = ~uint64_t{0};
constinit uint32_t proc_is_own = 0;  // whether /proc has the numbers of this namespace: 1 no, 2 yes
constinit Foreign foreign{nullptr, nullptr};
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

uint32_t mark_of(uint64_t inode) { return static_cast<uint32_t>(inode) << kTickBits; }
uint32_t ticks_of(uint32_t start) { return start & kTickMask; }

// In a namespace of its own whose /proc is still that of the one above, a number there is another process'.
bool has_own_proc() {
  uint32_t known = base::load_relaxed(&proc_is_own);
  if (WEIR_UNLIKELY(known == 0)) {
    char number[24], name[24];
    base::Writer(name, sizeof name).add_number(static_cast<uint64_t>(base::process_id()));
    const long n = base::read_link("/proc/self", number, sizeof number - 1);
    if (n > 0 && n < static_cast<long>(sizeof number)) number[n] = 0;
    known = n > 0 && strcmp(number, name) != 0 ? 1 : 2;
    base::store_relaxed(&proc_is_own, known);
  }
  return known == 2;
}

// Start time and state of a process or a thread. The name in field 2 may have blanks and parentheses. False: there is none.
bool read_about(uint32_t id, uint32_t* start, char* state, uint64_t* threads) {
  if (!has_own_proc()) return false;
  char path[32], text[512];
  base::Writer(path, sizeof path).add("/proc/").add_number(id).add("/stat");
  const long n = base::read_file_apart(path, text, sizeof text);
  if (n <= 0) return false;
  const char* at = strrchr(text, ')');
  if (at == nullptr || at[1] == 0) return false;
  *state = at[2];
  *threads = field(at, 20);
  *start = static_cast<uint32_t>(field(at, 22));
  return true;
}

bool has_number(uint32_t pid) { return base::system_call(SYS_kill, pid, 0) != -ESRCH; }

// Whether a process of that number runs, and when it started; 0: unknown. Where /proc does not show
// it (another root directory, another user's with hidepid), its number is all there is. A program
// may end its first thread alone: that one is then a zombie among living threads.
bool read_start(uint32_t pid, uint32_t* start) {
  char state = 0;
  uint64_t threads = 0;
  *start = 0;
  if (!has_number(pid)) return false;
  if (!read_about(pid, start, &state, &threads)) return has_number(pid);
  return state != 'X' && (state != 'Z' || threads > 1);
}

// Processes that lived when their start was read, with the numbers of their directories in /proc, which no later process of the same
// number has. Of each thread, so that no lock is needed.
struct Met {
  Identity who;
  uint64_t number;
};
constexpr uint32_t kMet = 16;
WEIR_THREAD Met met_before[kMet];

// 0: unknown.
uint64_t number_in_proc(uint32_t pid) {
  if (!has_own_proc()) return 0;
  char path[32];
  base::Writer(path, sizeof path).add("/proc/").add_number(pid);
  struct stat about;
  return base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path), reinterpret_cast<long>(&about), 0) == 0 ? about.st_ino : 0;
}

// A zombie has none. Without a descriptor; false also where it cannot be known.
bool has_memory(uint32_t pid) {
  char path[32], program[8];
  base::Writer(path, sizeof path).add("/proc/").add_number(pid).add("/exe");
  return base::system_call(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>(path), reinterpret_cast<long>(program), sizeof program) > 0;
}

enum class Owner { kGone, kStopped, kRuns };

// The owner is known by 9 bits of its start time alone; by none where it could not read them. Its namespace is not in the word.
Owner owner_here(uint32_t word) {
  const uint32_t thread = word & kPidMask, begun = word >> kPidBits & kStartMask;
  const auto is_there = [=] { return base::system_call(SYS_tkill, thread, 0) != -ESRCH; };
  uint32_t start = 0;
  char state = 0;
  uint64_t threads = 0;
  if (!is_there()) return Owner::kGone;
  if (!read_about(thread, &start, &state, &threads)) {
    return is_there() ? Owner::kRuns : Owner::kGone;  // as read_start()
  }
  if (state == 'X' || state == 'Z') return Owner::kGone;
  if (begun != 0 && (start & kStartMask) != begun) return Owner::kGone;
  return state == 'T' || state == 't' ? Owner::kStopped : Owner::kRuns;
}

bool is_shared() {
  const auto ask = base::load_relaxed(&foreign.is_shared);
  return ask != nullptr && ask();
}

// Of a lock that processes share: where some are of another namespace nobody can tell that the owner has ended.
Owner owner_of(uint32_t word) {
  const Owner owner = owner_here(word);
  return owner != Owner::kRuns && is_shared() ? Owner::kRuns : owner;
}

uint32_t this_thread() {
  if (WEIR_UNLIKELY(own_word == 0)) {
    const auto thread = static_cast<uint32_t>(base::thread_id());
    uint32_t start = 0;
    char state = 0;
    uint64_t threads = 0;
    const base::SignalsBlocked blocked;
    read_about(thread, &start, &state, &threads);
    own_word = (thread & kPidMask) | (start & kStartMask) << kPidBits;
  }
  return own_word;
}

// Another start time than this one, and none that is unknown (0).
uint32_t other_start(uint32_t begun) {
  return begun == kStartMask ? kStartMask >> 1 : begun ^ kStartMask;
}

Stuck& stuck_at(const Lock& lock) { return stuck[reinterpret_cast<uintptr_t>(&lock) / 64 % (sizeof stuck / sizeof stuck[0])]; }
bool known_as_stuck(const Lock& lock, uint32_t word) {
  const Stuck& at = stuck_at(lock);
  return base::load_relaxed(&at.lock) == &lock && base::load_relaxed(&at.word) == (word & ~kSleepers);
}
void remember_stuck(const Lock& lock, uint32_t word) {
  base::store_relaxed(&stuck_at(lock).word, word & ~kSleepers);
  base::store_relaxed(&stuck_at(lock).lock, &lock);
}

// Before the lock is taken, and note_released() after it was let go: a jump between the two leaves it in the list.
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
    if (base::load_relaxed(&lock.word) == 0 && base::compare_exchange(&lock.word, &seen, me)) return true;
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
      if ((seen & kSleepers) == 0 && !base::compare_exchange(&lock.word, &seen, seen | kSleepers)) continue;
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
    const uint64_t most = base::load_relaxed(&wait_ns), limit = owner == Owner::kStopped && most > kStoppedWaitNs ? kStoppedWaitNs : most;
    if (!again && base::now_ns() - begun < limit) continue;
    remember_stuck(lock, seen);
    return Taken::kNot;
  }
}

}  // namespace

void read_lock_wait() {
  int64_t ms = 0;
  const char* text = getenv("WEIR_LOCK_WAIT_MS");
  if (text != nullptr && base::parse_number(base::text(text), &ms) && ms > 0) base::store_relaxed(&wait_ns, static_cast<uint64_t>(ms) * 1'000'000);
}

Identity self() {
  uint64_t known = base::load(&own);
  if (WEIR_UNLIKELY(known == 0)) {
    const base::SignalsBlocked blocked;
    const auto pid = static_cast<uint32_t>(base::process_id());
    uint32_t start = 0;
    read_start(pid, &start);
    start = ticks_of(start) | mark_of(own_namespace());
    known = uint64_t{start} << 32 | pid;
    base::store(&own, known);
  }
  return {static_cast<uint32_t>(known), static_cast<uint32_t>(known >> 32)};
}

uint64_t own_namespace() {
  uint64_t known = base::load(&name_space);
  if (WEIR_UNLIKELY(known == 0)) {
    struct stat about;
    constexpr const char* kPath = "/proc/self/ns/pid";
    const bool found = base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(kPath), reinterpret_cast<long>(&about), 0) == 0;
    known = found ? about.st_ino : kNone;
    base::store(&name_space, known);
  }
  return known == kNone ? 0 : known;
}

bool sees_all_processes() { return own_namespace() == kFirstNamespace; }

bool is_foreign(Identity who) {
  const uint32_t its = who.start >> kTickBits, mine = self().start >> kTickBits;
  return its != mine && its != 0 && mine != 0;
}

void on_foreign(const Foreign& answers) {
  base::store(&foreign.life_of, answers.life_of);
  base::store(&foreign.is_shared, answers.is_shared);
}

void forked() {
  base::store(&own, uint64_t{0});
  base::store(&name_space, uint64_t{0});
  base::store(&proc_is_own, 0u);
  own_word = 0;
  held.count = 0;
}

uint32_t start_of(uint32_t pid) {
  uint32_t start = 0;
  char state = 0;
  uint64_t threads = 0;
  return pid != 0 && read_about(pid, &start, &state, &threads) ? ticks_of(start) | mark_of(own_namespace()) : 0;
}

bool runs(uint32_t pid) {
  uint32_t start = 0;
  return read_start(pid, &start);
}

bool alive(Identity who) {
  if (who.pid == 0) return false;
  if (is_foreign(who)) {
    const auto ask = base::load_relaxed(&foreign.life_of);
    return ask == nullptr || ask(who) != Life::kEnded;
  }
  if (!has_number(who.pid)) return false;
  const uint64_t number = number_in_proc(who.pid);
  Met& met = met_before[who.pid % kMet];
  if (number != 0 && met.number == number && met.who == who && has_memory(who.pid)) return true;
  uint32_t start = 0;
  if (!read_start(who.pid, &start)) return false;
  if (ticks_of(start) == 0 || ticks_of(who.start) == 0) return true;
  if (ticks_of(start) != ticks_of(who.start)) return false;
  met = {who, number};
  return true;
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
  if (seen == 0 || owner_of(seen) != Owner::kGone || !base::compare_exchange(&lock.word, &seen, 0u)) return false;
  wake(&lock.word, 1);
  return true;
}

}  // namespace weir::node
