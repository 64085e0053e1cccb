// SPDX-License-Identifier: Apache-2.0
// Which dirty blocks are written though the program does nothing: those of a second of age
// (layers/flush_timer), and full ones soon.
#include "layers/bufa/shared.h"
#include "layers/bufa/state.h"
#include "base/lock.h"
#include "base/syscall.h"

namespace weir::layers::bufa {
namespace {

constexpr uint64_t kSoonNs = 20'000'000;

Shared* shared_page = nullptr;

bool age(Layer& l) {
  State& s = state_of(l);
  reap(l);
  if (!any_dirty(s)) return false;
  for (uint32_t i = 0; i < s.writer->high; ++i) {
    WriteBlock& b = s.writer->blocks[i];
    if (b.state == BlockState::kDirty && !b.failed && ++b.age >= flush_timer::kOld) issue(l, b);
  }
  return any_dirty(s);
}

void issue_what_is_full(pool::Job*) {
  Shared& all = *shared();
  base::store(&all.looking_soon, 0u);
  const bool seen = flush_timer::each(all.dirty, [](Layer& l) {
    if (state_of(l).writer != nullptr && !issue_after_filling(l)) look_soon();
  });
  if (!seen) look_soon();
}

}  // namespace

Shared* shared() { return flush_timer::wiped_by_fork(&shared_page); }

writeback::Arena* arena_for(uint64_t block_bytes) {
  Shared* all = shared();
  if (all == nullptr) return nullptr;
  const base::Locked lock(&all->lock);
  for (auto& one : all->arenas) {
    if (one.arena != nullptr && one.block_bytes == block_bytes) return one.arena;
    if (one.arena != nullptr) continue;
    uint64_t blocks = kArenaBytes / block_bytes;
    if (blocks > writeback::kMostBlocks) blocks = writeback::kMostBlocks;
    one.arena = writeback::create_arena(static_cast<uint32_t>(blocks),
                                        static_cast<uint32_t>(block_bytes), kFilesOfArena);
    one.block_bytes = block_bytes;
    return one.arena;
  }
  return nullptr;
}

void begin_flush_timer(Layer& l) {
  State& s = state_of(l);
  Shared* all = shared();
  if (s.flush_timer.listed || all == nullptr) return;
  all->dirty.look = age;
  flush_timer::begin(all->dirty, s.flush_timer, l);
}

void look_soon() {
  Shared* all = shared();
  uint32_t nobody = 0;
  if (!base::compare_exchange(&all->looking_soon, &nobody, 1u)) return;
  all->soon.run = issue_what_is_full;
  if (!pool::submit_after(all->soon, kSoonNs)) base::store(&all->looking_soon, 0u);
}

void end_flush_timer(Layer& l) {
  if (Shared* all = state_of(l).flush_timer.listed ? shared() : nullptr; all != nullptr)
    flush_timer::end(all->dirty, state_of(l).flush_timer);
}

}  // namespace weir::layers::bufa
