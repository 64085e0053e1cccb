// SPDX-License-Identifier: Apache-2.0
// Dirty blocks are written after half a second to a second even if the program does nothing: other nodes then see them, and
// less is at stake. A thread of the pool looks at all files twice a second while any has dirty blocks.
#include "layers/bufa/shared.h"
#include "layers/bufa/state.h"
#include "os/syscall.h"
#include "pool/futex.h"
#include "stack/lock.h"

namespace weir::layers::bufa {
namespace {

constexpr uint64_t kTickNs = 500'000'000, kSoonNs = 40'000'000;
constexpr uint8_t kOld = 2;  // ticks
constexpr int kWipeOnFork = 18;

Shared* shared_page = nullptr;

// With the file's lock.
void age(Layer& l) {
  State& s = state_of(l);
  reap(l);
  if (!any_dirty(s)) return;
  for (uint32_t i = 0; i < s.writer->high; ++i) {
    WriteBlock& b = s.writer->blocks[i];
    if (b.state == BlockState::kDirty && !b.failed && ++b.age >= kOld) issue(l, b);
  }
}

void unlink(Shared& all, State& s) {
  (s.previous_dirty == nullptr ? all.dirty : s.previous_dirty->next_dirty) = s.next_dirty;
  if (s.next_dirty != nullptr) s.next_dirty->previous_dirty = s.previous_dirty;
  s.next_dirty = s.previous_dirty = nullptr;
  s.registered = false;
}

void tick(pool::Job* job) {
  Shared& all = *shared();
  const pool::Lock lock(&all.lock);
  for (State* s = all.dirty; s != nullptr;) {
    State* next = s->next_dirty;
    stack::File* f = s->layer->file;
    if (stack::lock_patiently(f)) {
      age(*s->layer);
      if (!any_dirty(*s)) unlink(all, *s);
      stack::unlock(f);
    }
    s = next;
  }
  all.ticking = all.dirty != nullptr && pool::submit_after(*job, kTickNs);
}

void issue_what_is_full(pool::Job*) {
  Shared& all = *shared();
  base::store(&all.looking_soon, 0u);
  const pool::Lock lock(&all.lock);
  for (State* s = all.dirty; s != nullptr; s = s->next_dirty) {
    stack::File* f = s->layer->file;
    if (!stack::lock_patiently(f)) {
      look_soon();
      continue;
    }
    if (s->writer != nullptr) issue_all_full(*s->layer);
    stack::unlock(f);
  }
}

}  // namespace

Shared* shared() {
  Shared* found = base::load(&shared_page);
  if (WEIR_LIKELY(found != nullptr)) return found;
  const uint64_t bytes = round_up(sizeof(Shared), kPage);
  const long memory = os::map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (os::failed(memory)) return nullptr;
  auto* made = reinterpret_cast<Shared*>(memory);
  os::advise(made, bytes, kWipeOnFork);
  if (base::compare_exchange(&shared_page, &found, made)) return made;
  os::unmap(made, bytes);
  return found;
}

drain::Arena* arena_for(uint64_t block_bytes) {
  Shared* all = shared();
  if (all == nullptr) return nullptr;
  const os::SignalsBlocked blocked;
  const pool::Lock lock(&all->lock);
  for (auto& one : all->arenas) {
    if (one.arena != nullptr && one.block_bytes == block_bytes) return one.arena;
    if (one.arena != nullptr) continue;
    uint64_t blocks = kArenaBytes / block_bytes;
    if (blocks > drain::kMostBlocks) blocks = drain::kMostBlocks;
    one.arena = drain::create_arena(static_cast<uint32_t>(blocks), static_cast<uint32_t>(block_bytes), kFilesOfArena);
    one.block_bytes = block_bytes;
    return one.arena;
  }
  return nullptr;
}

void begin_ageing(Layer& l) {
  State& s = state_of(l);
  Shared* all = shared();
  if (s.registered || all == nullptr) return;
  const os::SignalsBlocked blocked;
  const pool::Lock lock(&all->lock);
  s.registered = true;
  s.previous_dirty = nullptr;
  s.next_dirty = all->dirty;
  if (all->dirty != nullptr) all->dirty->previous_dirty = &s;
  all->dirty = &s;
  if (all->ticking) return;
  all->tick.run = tick;
  all->ticking = pool::submit_after(all->tick, kTickNs);
}

void look_soon() {
  Shared* all = shared();
  uint32_t nobody = 0;
  if (!base::compare_exchange(&all->looking_soon, &nobody, 1u)) return;
  all->soon.run = issue_what_is_full;
  if (!pool::submit_after(all->soon, kSoonNs)) base::store(&all->looking_soon, 0u);
}

void end_ageing(Layer& l) {
  State& s = state_of(l);
  Shared* all = shared();
  if (!s.registered || all == nullptr) return;
  const os::SignalsBlocked blocked;
  const pool::Lock lock(&all->lock);
  if (s.registered) unlink(*all, s);
}

}  // namespace weir::layers::bufa
