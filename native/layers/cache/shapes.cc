// SPDX-License-Identifier: Apache-2.0
// Caches of this process: one for each shape that a layer asks for, and how it lies in its arena.
#include "base/round.h"
#include "base/syscall.h"
#include "base/text.h"
#include "layers/cache/forwarding.h"
#include "layers/cache/slots.h"

namespace weir::cache {
namespace {

constexpr uint32_t kPage = 4096;
constexpr uint32_t kShapes = 32;      // different caches in one process
constexpr uint32_t kEnrolments = 64;  // files open for writing at a time, in one cache

struct Attached {
  Shape shape;
  Cache cache;
};
constinit Attached attached[kShapes] = {};
uint32_t attached_count = 0;
uint32_t attaching = 0;
node::Identity attached_by{};  // a forked child takes no part in the parent's

uint32_t piece_bytes_for(uint32_t block_bytes) {
  const uint32_t piece = (block_bytes + kPieces - 1) / kPieces;
  return static_cast<uint32_t>(base::round_up(piece, kPage));
}

// As the shape's caches are: whole pages, whole sets, no more blocks than an arena can have.
Shape rounded(const Shape& wanted) {
  Shape s = wanted;
  s.block_bytes = static_cast<uint32_t>(base::round_up(wanted.block_bytes, kPage));
  s.slots = static_cast<uint32_t>(base::round_up(wanted.slots, kWays));
  if (s.slots > kMostSlots) s.slots = kMostSlots;
  if (s.block_bytes == 0) return s;
  const uint32_t piece = piece_bytes_for(s.block_bytes);
  const uint32_t pieces = (s.block_bytes + piece - 1) / piece;
  while (s.slots > kWays && s.slots * pieces > writeback::kMostBlocks) s.slots -= kWays;
  return s;
}

// Parts of the arena's extra memory.
struct Extra {
  uint64_t blocks_at, forwarding_at, bytes;
};
Extra extra_of(const Shape& shape, uint32_t pieces) {
  const uint64_t blocks_at = sizeof(Directory) + uint64_t{shape.slots} * sizeof(Slot);
  const uint64_t end = blocks_at + uint64_t{shape.slots} * pieces * sizeof(uint32_t);
  const uint64_t forwarding_at = base::round_up(end, alignof(Forwarding));
  const bool forwards = shape.forwarders != 0;
  return {blocks_at, forwarding_at, forwards ? forwarding_at + sizeof(Forwarding) : end};
}

// takes_part: else the cache has to be there, and no part is taken in its arena.
bool map_cache(Cache& c, const Shape& shape, bool takes_part) {
  c.piece_bytes = piece_bytes_for(shape.block_bytes);
  c.block_bytes = shape.block_bytes;
  c.pieces = (shape.block_bytes + c.piece_bytes - 1) / c.piece_bytes;
  c.slots = shape.slots;
  c.sets = shape.slots / kWays;
  c.forwarders = shape.forwarders;
  char name[56];
  base::Writer text(name, sizeof name);
  text.add("cache-").add_number(kVersion).add("-").add_number(shape.block_bytes);
  text.add("-").add_number(shape.slots);
  if (shape.forwarders != 0) text.add("-f").add_number(shape.forwarders);
  const Extra extra = extra_of(shape, c.pieces);
  const auto map = takes_part ? writeback::share_arena : writeback::look_at_arena;
  c.arena = map(name, shape.slots * c.pieces, c.piece_bytes, kEnrolments, extra.bytes);
  if (c.arena == nullptr) return false;
  auto* const memory = static_cast<char*>(writeback::extra(c.arena));
  c.directory = reinterpret_cast<Directory*>(memory);
  c.blocks = reinterpret_cast<uint32_t*>(memory + extra.blocks_at);
  c.forwarding = shape.forwarders != 0
                     ? reinterpret_cast<Forwarding*>(memory + extra.forwarding_at)
                     : nullptr;
  Directory& d = *c.directory;
  if (node::take(d.files_lock) == node::Taken::kNot) return base::load(&d.ready) == kVersion;
  if (base::load(&d.ready) != kVersion) {
    d.slots = shape.slots;
    d.sets = c.sets;
    d.pieces = c.pieces;
    d.piece_bytes = c.piece_bytes;
    d.block_bytes = shape.block_bytes;
    base::store(&d.ready, kVersion);
  }
  node::release(d.files_lock);
  return true;
}

}  // namespace

Cache* attach(const Shape& wanted) {
  const Shape shape = rounded(wanted);
  const base::SignalsBlocked blocked;  // a handler would wait for its own thread
  const node::Identity me = node::self();
  // The word holds the taker's number: of another process, it was taken when the parent forked.
  for (uint32_t seen = 0; !base::compare_exchange(&attaching, &seen, me.pid); seen = 0) {
    if (seen != me.pid && base::compare_exchange(&attaching, &seen, me.pid)) break;
    node::sleep_on(&attaching, me.pid,
                   kMillisecond / 5);  // another thread, which may be mapping memory
  }
  if (!(attached_by == me)) {
    attached_count = 0;
    forget_users();
  }
  attached_by = me;
  Cache* found = nullptr;
  for (uint32_t i = 0; i < attached_count; ++i) {
    if (attached[i].shape == shape) found = &attached[i].cache;
  }
  if (found == nullptr && attached_count < kShapes && shape.block_bytes != 0 && shape.slots != 0) {
    Attached& next = attached[attached_count];
    if (map_cache(next.cache, shape, true)) {
      next.shape = shape;
      ++attached_count;
      found = &next.cache;
    }
  }
  base::store(&attaching, 0u);
  return found;
}

bool look_at(const Shape& wanted, Cache* to) {
  const Shape shape = rounded(wanted);
  return shape.block_bytes != 0 && shape.slots != 0 && map_cache(*to, shape, false);
}

}  // namespace weir::cache
