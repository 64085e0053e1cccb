// SPDX-License-Identifier: Apache-2.0
#include "layers/pack/shared.h"

#include <fcntl.h>
#include <string.h>

#include "base/round.h"
#include "base/syscall.h"

namespace weir::layers::pack {
namespace {

template <typename T = Name>
T* at_place(const Shared* s, uint32_t place) {
  return reinterpret_cast<T*>(reinterpret_cast<char*>(const_cast<Shared*>(s)) +
                              uint64_t{place} * 8);
}

// The list from `place` on, up to `until`.
Name* find_in(const Shared* s, uint32_t place, uint32_t until, uint32_t hash, base::Text name) {
  while (place != until && place != 0) {
    Name* const n = at_place(s, place);
    if (n->hash == hash && n->bytes == name.size && memcmp(n->text, name.data, name.size) == 0)
      return n;
    place = base::load(&n->next);
  }
  return nullptr;
}

uint32_t hash_of(base::Text name) { return static_cast<uint32_t>(base::hash(name, 0)); }

bool back_heap(const Segment& s, uint64_t end) {
  uint64_t backed = base::load(&s.shared->heap_backed);
  if (end <= backed) return true;
  const uint64_t want = base::round_up(end, kHeapStep);
  if (want > kWindowsAt || !back(s, backed, want - backed)) return false;
  while (backed < want && !base::compare_exchange(&s.shared->heap_backed, &backed, want)) {
  }
  return true;
}

}  // namespace

bool back(const Segment& s, uint64_t offset, uint64_t bytes) {
  const base::HoldsDescriptor held;
  const long fd = base::open_at(AT_FDCWD, s.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (base::failed(fd)) return false;
  const long done = base::allocate(static_cast<int>(fd), offset, bytes);
  base::close_fd(static_cast<int>(fd));
  return done == 0;
}

Name* find_name(const Segment& s, base::Text name) {
  const uint32_t hash = hash_of(name);
  return find_in(s.shared, base::load(&s.shared->heads[hash % kHeads]), 0, hash, name);
}

uint32_t take_heap(const Segment& s, uint64_t bytes) {
  const uint64_t whole = base::round_up(bytes, 8);
  const uint64_t at = base::fetch_add(&s.shared->heap_used, whole);
  return back_heap(s, at + whole) ? static_cast<uint32_t>(at / 8) : 0;
}

Name* make_name(const Segment& s, base::Text name) {
  const uint32_t hash = hash_of(name);
  uint32_t* const head = &s.shared->heads[hash % kHeads];
  uint32_t first = base::load(head);
  if (Name* n = find_in(s.shared, first, 0, hash, name); n != nullptr) return n;
  const uint32_t place = take_heap(s, sizeof(Name) + name.size + 1);
  if (place == 0) return nullptr;
  Name* const made = at_place(s.shared, place);
  memcpy(made->text, name.data, name.size);
  made->hash = hash;
  base::store(&made->bytes, static_cast<uint32_t>(name.size));
  for (;;) {
    base::store(&made->next, first);
    uint32_t seen = first;
    if (base::compare_exchange(head, &seen, place)) return made;
    if (Name* n = find_in(s.shared, seen, first, hash, name); n != nullptr) return n;
    first = seen;
  }
}

Name* name_at(const Segment& s, uint32_t place) { return at_place(s.shared, place); }
MoreOpened* more_opened_at(const Segment& s, uint32_t place) {
  return at_place<MoreOpened>(s.shared, place);
}

Version current(const Name* n) {
  for (;;) {
    const uint32_t count = base::load(&n->current);
    const Version v = n->versions[count & 1];
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (base::load(&n->current) == count) return v;
  }
}

void publish(Name* n, const Version& v) {
  const uint32_t next = base::load(&n->current) + 1;
  n->versions[next & 1] = v;
  base::store(&n->current, next);
}

Name* next_name(const Segment& s, Cursor* at) {
  uint32_t place = at->place != 0 ? base::load(&at_place(s.shared, at->place)->next) : 0;
  if (at->place == 0 && at->head < kHeads) place = base::load(&s.shared->heads[at->head]);
  while (place == 0 && ++at->head < kHeads) place = base::load(&s.shared->heads[at->head]);
  at->place = place;
  return place != 0 ? at_place(s.shared, place) : nullptr;
}

}  // namespace weir::layers::pack
