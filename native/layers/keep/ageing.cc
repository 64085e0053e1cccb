// SPDX-License-Identifier: Apache-2.0
// What has been appended is written after half a second to a second even if nothing more comes. A thread of the pool looks twice a
// second at the files that have something.
#include "layers/keep/state.h"
#include "os/syscall.h"
#include "stack/lock.h"
#include "stack/park.h"

namespace weir::layers::keep {
namespace {

constexpr uint64_t kTickNs = 500'000'000;
constexpr uint8_t kOld = 2;  // ticks
constexpr int kWipeOnFork = 18;

Shared* shared_page = nullptr;

void unlist(Shared& all, State& s) {
  (s.previous == nullptr ? all.waiting : s.previous->next) = s.next;
  if (s.next != nullptr) s.next->previous = s.previous;
  s.next = s.previous = nullptr;
  s.listed = false;
}

void tick(pool::Job* job) {
  Shared& all = *shared();
  const pool::Lock lock(&all.lock);
  for (State* s = all.waiting; s != nullptr;) {
    State* next = s->next;
    stack::File* f = s->layer->file;
    if (stack::lock_patiently(f)) {
      if (++s->age >= kOld) {
        write_out(*s->layer);
        unlist(all, *s);
      }
      stack::unlock(f);
    }
    s = next;
  }
  all.ticking = all.waiting != nullptr && pool::submit_after(*job, kTickNs);
}

void sweep(pool::Job*) { stack::drop_left(); }

}  // namespace

Shared* shared() {
  Shared* found = base::load(&shared_page);
  if (WEIR_LIKELY(found != nullptr)) return found;
  constexpr uint64_t kBytes = 4096;
  static_assert(sizeof(Shared) <= kBytes);
  const long memory = os::map(kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (os::failed(memory)) return nullptr;
  auto* made = reinterpret_cast<Shared*>(memory);
  os::advise(made, kBytes, kWipeOnFork);
  if (base::compare_exchange(&shared_page, &found, made)) return made;
  os::unmap(made, kBytes);
  return found;
}

drain::Arena* arena(uint64_t bytes) {
  Shared* all = shared();
  if (all == nullptr) return nullptr;
  if (drain::Arena* made = base::load(&all->arena); WEIR_LIKELY(made != nullptr)) return made;
  const os::SignalsBlocked blocked;
  const pool::Lock lock(&all->lock);
  if (all->arena == nullptr) {
    const uint64_t blocks = bytes < kBlockBytes ? 1 : bytes / kBlockBytes;
    base::store(&all->arena, drain::create_arena(static_cast<uint32_t>(blocks), kBlockBytes, kFilesOfArena));
  }
  return all->arena;
}

void begin_waiting(State& s) {
  Shared* all = shared();
  if (s.listed || all == nullptr) return;
  const os::SignalsBlocked blocked;
  const pool::Lock lock(&all->lock);
  s.listed = true;
  s.age = 0;
  s.previous = nullptr;
  s.next = all->waiting;
  if (all->waiting != nullptr) all->waiting->previous = &s;
  all->waiting = &s;
  if (all->ticking) return;
  all->tick.run = tick;
  all->ticking = pool::submit_after(all->tick, kTickNs);
}

void end_waiting(State& s) {
  Shared* all = shared();
  if (!s.listed || all == nullptr) return;
  const os::SignalsBlocked blocked;
  const pool::Lock lock(&all->lock);
  if (s.listed) unlist(*all, s);
}

void sweep_soon() {
  Shared* all = shared();
  if (all == nullptr || !stack::any_parked() || !pool::idle(all->sweep)) return;
  all->sweep.run = sweep;
  pool::submit_after(all->sweep, 1'000'000);
}

}  // namespace weir::layers::keep
