// SPDX-License-Identifier: Apache-2.0
// Accepted bytes that wait are written after half a second to a second even if the program does
// nothing: others then see them, and less is at stake. A layer keeps a list of its files that have
// some; a thread of the pool looks at them twice a second, each with the file's lock. Files that
// the program is using are looked at the next time.
//
// Lists lie in pages that are empty in a forked child, where arenas and threads are the parent's.
#pragma once

#include <stdint.h>

#include "base/lock.h"
#include "base/syscall.h"
#include "layers/machinery/pool/pool.h"
#include "layers/machinery/stack/layer.h"
#include "layers/machinery/stack/lock.h"

namespace weir::layers::flush_timer {

inline constexpr uint64_t kTickNs = 500'000'000;
inline constexpr uint8_t kOld = 2;  // ticks

// In the state of a file. Zeroed, it is in no list.
struct Member {
  stack::Layer* layer;
  Member *next, *previous;
  bool listed;
};

// Zeroed, it is empty but for `look`.
struct List {
  pool::Job tick;
  uint32_t lock;
  bool ticking;
  Member* first;
  bool (*look)(stack::Layer&);  // once a tick; false: nothing waits any more
};

// With the file's lock held, both. begin() also when it is in the list; end() before the state
// goes.
void begin(List&, Member&, stack::Layer&);
void end(List&, Member&);

// Each file of the list, with its lock. False: some were in use.
template <typename Do>
bool each(List& list, Do act) {
  const base::Locked lock(&list.lock);
  bool all = true;
  for (Member* m = list.first; m != nullptr; m = m->next) {
    stack::File* f = m->layer->file;
    if (!stack::lock_patiently(f)) {
      all = false;
      continue;
    }
    act(*m->layer);
    stack::unlock(f);
  }
  return all;
}

// A zeroed T that begins as zeroes again in a forked child, made when it is first asked for; null:
// no memory. T must mean "nothing yet" when it is all zeroes.
void* wiped_by_fork(void** page, uint64_t bytes);
template <typename T>
T* wiped_by_fork(T** page) {
  T* found = base::load(page);
  return WEIR_LIKELY(found != nullptr)
             ? found
             : static_cast<T*>(wiped_by_fork(reinterpret_cast<void**>(page), sizeof(T)));
}

}  // namespace weir::layers::flush_timer
