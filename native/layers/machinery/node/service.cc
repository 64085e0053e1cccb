// SPDX-License-Identifier: Apache-2.0
// Recalls reach a process by a word of its own in the registry; a thread that this process has for
// nothing else waits for it.
#include "layers/machinery/node/table.h"
#include "base/syscall.h"
#include "base/thread.h"

namespace weir::node {
namespace {

// set_robust_list(2): one list of one word, the member's pulse.
struct RobustHead {
  void* next;
  long futex_offset;
  void* pending;
};
constinit RobustHead robust_head{};
constinit void* robust_entry = nullptr;
constexpr uint32_t kOwnerEnded = 1u << 30,
                   kThreadBits = kOwnerEnded - 1;  // FUTEX_OWNER_DIED, FUTEX_TID_MASK

constexpr size_t kStackBytes = 256 << 10;  // a recall flushes a file through its layers
constexpr uint64_t kLookNs = 1'000'000'000;  // whether the program is still there

using Callback = void (*)(void*, Lease*);
constinit Callback usual_callback = nullptr;
constinit uint32_t member = 0;     // number, from 1
constinit Lock joining{};          // among threads of this process
constinit Lease* serving = nullptr;
constinit uint32_t served = 0;     // futex
constinit int server_thread = 0;

void serve_one(Lease* lease) {
  base::store(&serving, lease);
  uint32_t recalled = kRecalled;
  // Ordered after the store above: a close that does not see it is seen here.
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (base::load(&lease->state) == kLinked &&
      base::compare_exchange(&lease->recall, &recalled, uint32_t{kBeingServed})) {
    auto callback = reinterpret_cast<void (*)(void*, Lease*)>(lease->callback);
    if (callback == nullptr) callback = usual_callback;
    if (callback != nullptr) callback(reinterpret_cast<void*>(lease->owner), lease);
    else leave(lease);
  }
  base::store(&serving, static_cast<Lease*>(nullptr));
  base::fetch_add(&served, 1u);
  wake(&served);
}

// From here on processes that have no number of this one see whether it lives.
void begin_pulse(uint32_t* word) {
  robust_entry = &robust_head;
  robust_head = {&robust_entry,
                 reinterpret_cast<char*>(word) - reinterpret_cast<char*>(&robust_entry), nullptr};
  base::store(word, static_cast<uint32_t>(server_thread));
  if (base::failed(base::system_call(SYS_set_robust_list, reinterpret_cast<long>(&robust_head),
                                     sizeof robust_head)))
    base::store(word, 0u);
}

void* serve(void*) {
  base::begin_thread("weir-recall");
  server_thread = base::thread_id();
  Member& own = registry->members[base::load(&member) - 1];
  begin_pulse(&own.pulse);
  for (;;) {
    const uint32_t calls = base::load(&own.calls);
    const Identity me = self();
    for (uint32_t number = 1; number <= base::load(&registry->most_leases); ++number) {
      Lease* l = lease_at(number);
      if (base::load(&l->recall) == kRecalled && l->holder == me &&
          base::load(&l->state) == kLinked)
        serve_one(l);
    }
    sleep_on(&own.calls, calls, kLookNs);
    if (base::load(&own.calls) == calls) base::end_process_without_program();
  }
  return nullptr;
}

uint32_t take_member() {
  const Identity me = self();
  for (uint32_t i = 0; i < kMembers; ++i) {
    Member& m = registry->members[i];
    auto* word = reinterpret_cast<uint64_t*>(&m.who);
    uint64_t there = base::load(word);
    const Identity who{static_cast<uint32_t>(there), static_cast<uint32_t>(there >> 32)};
    if (there != 0 && !(who == me) && (is_foreign(who) || alive(who)))
      continue;  // that a foreign one has ended is known by its entry
    if (base::compare_exchange(word, &there, uint64_t{me.start} << 32 | me.pid)) {
      base::store(&m.pulse, 0u);
      return i + 1;
    }
  }
  return 0;
}

}  // namespace

void on_recall(void (*callback)(void*, Lease*)) { usual_callback = callback; }

uint32_t become_member() {
  const uint32_t known = base::load(&member);
  if (known != 0) return known;
  if (base::sealed()) return 0;
  acquire(joining);
  if (member == 0) {
    const uint32_t number = take_member();
    base::store(&member, number);
    if (number != 0 && !base::start_thread(serve, kStackBytes)) base::store(&member, 0u);
  }
  release(joining);
  return base::load(&member);
}

Life life_of_member(Identity who) {
  for (uint32_t i = 0; i < kMembers; ++i) {
    const Member& m = registry->members[i];
    if (!(m.who == who)) continue;
    const uint32_t pulse = base::load(&m.pulse);
    return (pulse & kOwnerEnded) != 0   ? Life::kEnded
           : (pulse & kThreadBits) != 0 ? Life::kAlive
                                        : Life::kUnknown;
  }
  return Life::kUnknown;
}

void recall_lease(Lease* lease) {
  uint32_t not_yet = kNotRecalled;
  if (!base::compare_exchange(&lease->recall, &not_yet, uint32_t{kRecalled}) || lease->member == 0)
    return;
  Member& m = registry->members[lease->member - 1];
  base::fetch_add(&m.calls, 1u);
  wake(&m.calls);
}

bool take_away(Lease* lease) {
  uint32_t was = kHoldsNothing;
  return base::compare_exchange(&lease->recall, &was, uint32_t{kTakenAway}) || was == kTakenAway;
}

bool begin(Lease* lease) {
  if (lease == nullptr || !(lease->holder == self())) return false;
  uint32_t was = base::load(&lease->recall);
  if (was != kHoldsNothing) return was != kTakenAway;
  const base::SignalsBlocked blocked;
  const uint32_t number = become_member();
  if (number == 0) return false;
  lease->member = number;  // who recalls it sees this by the exchange
  return base::compare_exchange(&lease->recall, &was, uint32_t{kNotRecalled});
}

bool taken_away(const Lease* lease) {
  return lease != nullptr && base::load(&lease->recall) == kTakenAway;
}

void wait_until_unserved(Lease* lease) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  for (;;) {
    const uint32_t before = base::load(&served);
    if (base::load(&serving) != lease || base::thread_id() == server_thread) return;
    sleep_on(&served, before, 10'000'000);
  }
}

void forget_membership() {
  member = 0;
  joining = {};
  serving = nullptr;
  server_thread = 0;
}

}  // namespace weir::node
