// SPDX-License-Identifier: Apache-2.0
// What keep's files share: the arena, and the list of those with bytes that wait
// (layers/flush_timer).
#include "layers/keep/state.h"
#include "base/lock.h"
#include "base/syscall.h"
#include "layers/machinery/stack/park.h"

namespace weir::layers::keep {
namespace {

Shared* shared_page = nullptr;

bool age(Layer& l) {
  if (++state(l).age < flush_timer::kOld) return true;
  write_out(l);
  return false;
}

void sweep(pool::Job*) { stack::drop_left(); }

}  // namespace

Shared* shared() { return flush_timer::wiped_by_fork(&shared_page); }

writeback::Arena* arena(uint64_t bytes) {
  Shared* all = shared();
  if (all == nullptr) return nullptr;
  if (writeback::Arena* made = base::load(&all->arena); WEIR_LIKELY(made != nullptr)) return made;
  const base::Locked lock(&all->lock);
  if (all->arena == nullptr) {
    const uint64_t blocks = bytes < kBlockBytes ? 1 : bytes / kBlockBytes;
    base::store(&all->arena,
                writeback::create_arena(static_cast<uint32_t>(blocks), kBlockBytes, kFilesOfArena));
  }
  return all->arena;
}

void begin_waiting(Layer& l) {
  State& s = state(l);
  Shared* all = shared();
  if (s.waiting.listed || all == nullptr) return;
  s.age = 0;
  all->waiting.look = age;
  flush_timer::begin(all->waiting, s.waiting, l);
}

void end_waiting(Layer& l) {
  if (Shared* all = state(l).waiting.listed ? shared() : nullptr; all != nullptr)
    flush_timer::end(all->waiting, state(l).waiting);
}

void sweep_soon() {
  Shared* all = shared();
  if (all == nullptr || !stack::any_parked() || !pool::idle(all->sweep)) return;
  all->sweep.run = sweep;
  pool::submit_after(all->sweep, 1'000'000);
}

}  // namespace weir::layers::keep
