// SPDX-License-Identifier: Apache-2.0
// Dirty lists. Every change ends in one store that makes it true; a process killed before it has
// changed nothing.
#include <string.h>

#include "base/atomic.h"
#include "layers/writeback/format.h"
#include "base/syscall.h"

namespace weir::writeback {
namespace {

// Blocks; of larger ones a map would cost more than some requests.
constexpr uint32_t kLargestMapped = 16u << 20;

List& active_list(Block& b) { return b.lists[base::load_relaxed(&b.active) & 1]; }
List& other_list(Block& b) { return b.lists[(base::load_relaxed(&b.active) & 1) ^ 1]; }
void publish(Block& b) { base::store(&b.active, base::load_relaxed(&b.active) ^ 1); }

// Ranges of `from` and [lo, hi) as one list. False when there are too many.
bool unite(const List& from, uint32_t lo, uint32_t hi, List* to) {
  uint32_t n = 0;
  bool placed = false;
  for (uint32_t i = 0; i < from.count; ++i) {
    const Range r = unpacked(from.ranges[i]);
    if (r.hi < lo) {
      to->ranges[n++] = packed(r.lo, r.hi);
    } else if (r.lo > hi) {
      if (!placed) {
        if (n == kRanges) return false;
        to->ranges[n++] = packed(lo, hi);
        placed = true;
      }
      if (n == kRanges) return false;
      to->ranges[n++] = packed(r.lo, r.hi);
    } else {
      if (r.lo < lo) lo = r.lo;
      if (r.hi > hi) hi = r.hi;
    }
  }
  if (!placed) {
    if (n == kRanges) return false;
    to->ranges[n++] = packed(lo, hi);
  }
  to->count = n;
  to->announced = from.announced;
  to->expected = from.expected;
  return true;
}

uint64_t* map_of(const Arena* arena, int block) {
  return arena->maps + uint64_t{static_cast<uint32_t>(block)} * arena->block_bytes / 64;
}

// Calls step(word, bits) for each word of a map that [lo, hi) has bits in.
template <typename Step>
void each_word(uint64_t* map, uint32_t lo, uint32_t hi, Step step) {
  for (uint32_t at = lo; at < hi;) {
    const uint32_t first = at % 64, n = hi - at < 64 - first ? hi - at : 64 - first;
    step(map + at / 64, (n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1) << first);
    at += n;
  }
}

// A store for each word: killed between two, the process has marked a part of what it copied.
void set_bits(uint64_t* map, uint32_t lo, uint32_t hi) {
  each_word(map, lo, hi, [](uint64_t* word, uint64_t bits) {
    base::store(word, base::load_relaxed(word) | bits);
  });
}
void clear_bits(uint64_t* map, uint32_t lo, uint32_t hi) {
  each_word(map, lo, hi, [](uint64_t* word, uint64_t bits) {
    base::store(word, base::load_relaxed(word) & ~bits);
  });
}

// The first bit from `at` on that is set (or, inverted, is not), `end` if none is.
uint32_t find_bit(const uint64_t* map, uint32_t at, uint32_t end, bool inverted) {
  while (at < end) {
    const uint64_t word =
        (inverted ? ~base::load_relaxed(&map[at / 64]) : base::load_relaxed(&map[at / 64])) >>
        at % 64;
    if (word != 0) {
      const uint32_t found = at + static_cast<uint32_t>(__builtin_ctzll(word));
      return found < end ? found : end;
    }
    at = (at / 64 + 1) * 64;
  }
  return end;
}

bool back_map(Arena* arena, int block) {
  Block& b = arena->blocks[block];
  if (b.map_backed != 0) return true;
  if (arena->maps == nullptr || arena->block_bytes > kLargestMapped) return false;
  const uint64_t bytes = map_bytes(arena->block_bytes),
                 at = arena->header->maps_at + uint64_t{static_cast<uint32_t>(block)} * bytes;
  if (!back(arena, at, bytes)) return false;
  base::store(&b.map_backed, 1u);
  return true;
}

// From a list to a map: the store of `active` makes it true.
bool begin_map(Arena* arena, int block) {
  if (!back_map(arena, block)) return false;
  Block& b = arena->blocks[block];
  const List& now = active_list(b);
  uint64_t* const map = map_of(arena, block);
  memset(map, 0, map_bytes(arena->block_bytes));
  for (uint32_t i = 0; i < now.count; ++i)
    set_bits(map, unpacked(now.ranges[i]).lo, unpacked(now.ranges[i]).hi);
  List& next = other_list(b);
  next.count = kMapped;
  next.announced = 0;
  publish(b);
  return true;
}

bool mark_elsewhere(Arena* arena, int block, const List& now, uint32_t lo, uint32_t hi) {
  Block& b = arena->blocks[block];
  for (uint32_t i = 0; i < now.count; ++i) {
    const Range r = unpacked(now.ranges[i]);
    if (r.lo <= lo && hi <= r.hi) return true;
  }
  if (unite(now, lo, hi, &other_list(b))) {
    publish(b);
    return true;
  }
  if (base::load_relaxed(&b.offset) == kAtEnd || !begin_map(arena, block)) return false;
  set_bits(map_of(arena, block), lo, hi);
  return true;
}

}  // namespace

void assign(Arena* arena, int block, int slot, uint64_t offset) {
  Block& b = arena->blocks[block];
  List& next = other_list(b);
  next.count = 0;
  next.announced = 0;
  publish(b);
  base::store(&b.assignment, base::fetch_add(&arena->header->assignments, uint64_t{1}));
  base::store(&b.offset, offset);
  base::store(&b.slot, slot);
}

int slot_of(const Arena* arena, int block) { return arena->blocks[block].slot; }
uint64_t offset_of(const Arena* arena, int block) { return arena->blocks[block].offset; }

bool mark_dirty(Arena* arena, int block, uint32_t lo, uint32_t hi) {
  if (lo >= hi) return true;
  Block& b = arena->blocks[block];
  List& now = active_list(b);
  const uint32_t n = now.count;
  if (WEIR_UNLIKELY(n == kMapped)) {
    set_bits(map_of(arena, block), lo, hi);
    return true;
  }
  if (n != 0) {
    const Range last = unpacked(now.ranges[n - 1]);
    if (WEIR_LIKELY(lo >= last.lo && lo <= last.hi)) {
      if (hi > last.hi) base::store(&now.ranges[n - 1], packed(last.lo, hi));
      return true;
    }
    if (lo < last.lo || n == kRanges) return mark_elsewhere(arena, block, now, lo, hi);
  }
  now.ranges[n] = packed(lo, hi);
  base::store(&now.count, n + 1);
  return true;
}

uint32_t cleanings(const Arena* arena, int block) {
  return base::load(&arena->blocks[block].cleanings);
}

bool is_mapped(const Arena* arena, int block) {
  return base::load(&active_list(arena->blocks[block]).count) == kMapped;
}

uint32_t dirty(const Arena* arena, int block, Range to[kRanges]) {
  const List& now = active_list(arena->blocks[block]);
  const uint32_t count = base::load(&now.count), n = count < kRanges    ? count
                                                     : count == kMapped ? 0
                                                                        : kRanges;
  for (uint32_t i = 0; i < n; ++i) to[i] = unpacked(now.ranges[i]);
  return n;
}

bool next_dirty(const Arena* arena, int block, uint32_t from, Range* to) {
  if (is_mapped(arena, block)) {
    const uint64_t* const map = map_of(arena, block);
    to->lo = find_bit(map, from, arena->block_bytes, false);
    to->hi = find_bit(map, to->lo, arena->block_bytes, true);
    return to->lo < to->hi;
  }
  Range ranges[kRanges];
  const uint32_t n = dirty(arena, block, ranges);
  for (uint32_t i = 0; i < n; ++i) {
    if (ranges[i].hi <= from) continue;
    *to = {ranges[i].lo > from ? ranges[i].lo : from, ranges[i].hi};
    return true;
  }
  return false;
}

bool is_dirty(const Arena* arena, int block) {
  Range any;
  const uint32_t count = base::load(&active_list(arena->blocks[block]).count);
  return count == kMapped ? next_dirty(arena, block, 0, &any) : count != 0;
}

uint32_t first_clean(const Arena* arena, int block, uint32_t from) {
  if (is_mapped(arena, block))
    return find_bit(map_of(arena, block), from, arena->block_bytes, true);
  Range range;
  return next_dirty(arena, block, from, &range) && range.lo == from ? range.hi : from;
}

bool is_all_dirty(const Arena* arena, int block, uint32_t lo, uint32_t hi) {
  return lo >= hi || first_clean(arena, block, lo) >= hi;
}

namespace {

// Clean again, the block goes on with a list.
void clean_map(Arena* arena, int block, uint32_t lo, uint32_t hi) {
  uint64_t* const map = map_of(arena, block);
  const uint32_t end = arena->block_bytes < hi ? arena->block_bytes : hi;
  clear_bits(map, lo, end);
  // Who writes ranges out goes upwards: what is left lies behind, and is found there soon.
  if (find_bit(map, end, arena->block_bytes, false) < arena->block_bytes ||
      find_bit(map, 0, lo, false) < lo)
    return;
  Block& b = arena->blocks[block];
  List& next = other_list(b);
  next.count = 0;
  next.announced = 0;
  publish(b);
}

// The ranges of `now` without [lo, hi). False: too many.
bool without(const List& now, uint32_t lo, uint32_t hi, List* next) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < now.count; ++i) {
    const Range r = unpacked(now.ranges[i]);
    const bool before = r.lo < lo, after = r.hi > hi;
    if (r.hi <= lo || r.lo >= hi) {
      if (n == kRanges) return false;
      next->ranges[n++] = packed(r.lo, r.hi);
      continue;
    }
    if (n + before + after > kRanges) return false;
    if (before) next->ranges[n++] = packed(r.lo, lo);
    if (after) next->ranges[n++] = packed(hi, r.hi);
  }
  next->count = n;
  next->announced = 0;
  return true;
}

}  // namespace

bool mark_clean(Arena* arena, int block, uint32_t lo, uint32_t hi) {
  if (lo >= hi) return true;
  Block& b = arena->blocks[block];
  base::store(&b.cleanings, base::load_relaxed(&b.cleanings) + 1);
  const List& now = active_list(b);
  if (now.count != kMapped) {
    if (without(now, lo, hi, &other_list(b))) {
      publish(b);
      return true;
    }
    if (base::load_relaxed(&b.offset) == kAtEnd || !begin_map(arena, block)) return false;
  }
  clean_map(arena, block, lo, hi);
  return true;
}

void begin_append(Arena* arena, int block, uint64_t file_bytes) {
  List& now = active_list(arena->blocks[block]);
  if (now.count == 0 || now.count == kMapped) return;
  base::store(&now.announced, uint64_t{0});
  base::store(&now.expected, file_bytes);
  base::store(&now.announced, base::load(&now.ranges[0]));
}

namespace {

constexpr uint32_t kMore = 64;  // blocks whose table entries are backed at a time

// False: there are no more, or no memory. Several may do it at once.
bool use_more_blocks(Arena* arena, uint32_t used) {
  Header* const h = arena->header;
  if (used >= h->blocks) return false;
  const uint32_t more = h->blocks - used < kMore ? h->blocks : used + kMore;
  if (!back(arena, h->blocks_at + uint64_t{used} * sizeof(Block),
            uint64_t{more - used} * sizeof(Block)))
    return false;
  base::compare_exchange(&h->blocks_used, &used, more);
  return true;
}

// Blocks that lie beside one another get their memory together.
bool back_data(Arena* arena, uint32_t at, uint32_t n) {
  const uint64_t bytes = uint64_t{n} * arena->block_bytes;
  if (!back(arena, arena->header->data_at + uint64_t{at} * arena->block_bytes, bytes)) return false;
  base::advise(data(arena, static_cast<int>(at)), bytes, 23 /* MADV_POPULATE_WRITE, Linux 5.14 */);
  for (uint32_t i = 0; i < n; ++i) base::store(&arena->blocks[at + i].backed, 1u);
  return true;
}

bool back_all(Arena* arena, const int* blocks, uint32_t n) {
  for (uint32_t i = 0, run; i < n; i += run) {
    const auto at = static_cast<uint32_t>(blocks[i]);
    run = 1;
    if (arena->blocks[at].backed != 0) continue;
    while (i + run < n && blocks[i + run] == blocks[i] + static_cast<int>(run) &&
           arena->blocks[at + run].backed == 0)
      ++run;
    if (!back_data(arena, at, run)) return false;
  }
  return true;
}

int claim_used_block(Arena* arena, uint32_t used) {
  const uint32_t from = base::load_relaxed(&arena->header->take_from);
  for (uint32_t i = 0; i < used; ++i) {
    const uint32_t at = (from + i) % used;
    Block& b = arena->blocks[at];
    uint32_t free = 0;
    if (base::load_relaxed(&b.taken) != 0 || !base::compare_exchange(&b.taken, &free, 1u)) continue;
    base::store_relaxed(&arena->header->take_from, at + 1);
    return static_cast<int>(at);
  }
  return -1;
}

int claim_block(Arena* arena) {
  for (;;) {
    const uint32_t used = blocks_used(arena->header);
    const int block = claim_used_block(arena, used);
    if (block >= 0) return block;
    if (used != blocks_used(arena->header)) continue;
    if (!use_more_blocks(arena, used)) return -1;
  }
}

}  // namespace

bool take_blocks(Arena* arena, int* to, uint32_t n) {
  uint32_t got = 0;
  while (got < n && (to[got] = claim_block(arena)) >= 0) ++got;
  if (got == n && back_all(arena, to, n)) return true;
  while (got > 0) give_block(arena, to[--got]);
  return false;
}

int take_block(Arena* arena) {
  int block = -1;
  return take_blocks(arena, &block, 1) ? block : -1;
}

// The lowest free block is the next to be taken: those that were in use before are warm, and the
// others take no memory.
void give_block(Arena* arena, int block) {
  base::store(&arena->blocks[block].taken, 0u);
  const auto at = static_cast<uint32_t>(block);
  if (at < base::load_relaxed(&arena->header->take_from))
    base::store_relaxed(&arena->header->take_from, at);
}

uint32_t free_blocks(const Arena* arena) {
  uint32_t n = 0;
  const uint32_t used = blocks_used(arena->header);
  for (uint32_t i = 0; i < used; ++i) n += base::load_relaxed(&arena->blocks[i].taken) == 0;
  return n + (arena->header->blocks - used);
}

void* data(const Arena* arena, int block) {
  return arena->data + uint64_t{static_cast<uint32_t>(block)} * arena->block_bytes;
}
void* extra(Arena* arena) { return arena->extra_data; }

// Whoever has a block's lock changes its list or its bytes. An owner that is stopped for longer
// than the bound loses it; one that runs does so after ten times as long.
bool lock_block(Arena* arena, int block) {
  constexpr uint64_t kSteps = 10 * node::kLockWaitNs / 20'000'000;
  node::Lock& lock = arena->blocks[block].lock;
  for (uint64_t steps = 0;; ++steps) {
    const node::Taken taken = node::take(lock);
    if (taken != node::Taken::kNot) return taken == node::Taken::kFromDead;
    if ((steps >= kSteps || node::owner_is_stopped(lock)) && node::revoke(lock) != 0) return true;
    uint32_t word = 0;
    node::sleep_on(&word, 0, 20'000'000);
  }
}
bool lock_block_patiently(Arena* arena, int block) {
  return node::take(arena->blocks[block].lock) != node::Taken::kNot;
}
bool try_lock_block(Arena* arena, int block) {
  return node::try_acquire(arena->blocks[block].lock);
}
void free_block_of_dead(Arena* arena, int block) {
  node::release_if_dead(arena->blocks[block].lock);
}
node::Lock* writer_of(const Arena* arena, int block) {
  const uint64_t place = base::load(&arena->blocks[block].writer);
  if (place == 0 || place * sizeof(node::Lock) > arena->header->extra_bytes) return nullptr;
  return reinterpret_cast<node::Lock*>(arena->extra_data) + (place - 1);
}
void set_writer(Arena* arena, int block, const node::Lock* lock) {
  const auto place = lock - reinterpret_cast<node::Lock*>(arena->extra_data);
  base::store(&arena->blocks[block].writer, static_cast<uint32_t>(place) + 1);
}
void unlock_block(Arena* arena, int block) { node::release(arena->blocks[block].lock); }

}  // namespace weir::writeback
