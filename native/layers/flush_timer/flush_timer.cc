// SPDX-License-Identifier: Apache-2.0
#include "base/round.h"
#include "layers/flush_timer/flush_timer.h"
#include "base/lock.h"

#include <stddef.h>

namespace weir::layers::flush_timer {
namespace {

constexpr int kWipeOnFork = 18;
constexpr uint64_t kPage = 4096;

void unlist(List& list, Member& m) {
  (m.previous == nullptr ? list.first : m.previous->next) = m.next;
  if (m.next != nullptr) m.next->previous = m.previous;
  m.next = m.previous = nullptr;
  m.listed = false;
}

void tick(pool::Job* job) {
  static_assert(offsetof(List, tick) == 0);
  List& list = *reinterpret_cast<List*>(job);
  const base::Locked lock(&list.lock);
  for (Member* m = list.first; m != nullptr;) {
    Member* next = m->next;
    stack::File* f = m->layer->file;
    if (stack::lock_patiently(f)) {
      if (!list.look(*m->layer)) unlist(list, *m);
      stack::unlock(f);
    }
    m = next;
  }
  list.ticking = list.first != nullptr && pool::submit_after(*job, kTickNs);
}

}  // namespace

void begin(List& list, Member& m, stack::Layer& layer) {
  if (m.listed) return;
  const base::Locked lock(&list.lock);
  m.layer = &layer;
  m.listed = true;
  m.previous = nullptr;
  m.next = list.first;
  if (list.first != nullptr) list.first->previous = &m;
  list.first = &m;
  if (list.ticking) return;
  list.tick.run = tick;
  list.ticking = pool::submit_after(list.tick, kTickNs);
}

void end(List& list, Member& m) {
  if (!m.listed) return;
  const base::Locked lock(&list.lock);
  if (m.listed) unlist(list, m);
}

void* wiped_by_fork(void** page, uint64_t bytes) {
  const uint64_t whole = base::round_up(bytes, kPage);
  const long memory = base::map(whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(memory)) return nullptr;
  auto* made = reinterpret_cast<void*>(memory);
  base::advise(made, whole, kWipeOnFork);
  void* found = nullptr;
  if (base::compare_exchange(page, &found, made)) return made;
  base::unmap(made, whole);
  return found;
}

}  // namespace weir::layers::flush_timer
