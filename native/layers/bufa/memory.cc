// SPDX-License-Identifier: Apache-2.0
// The reader's memory: as many blocks as the rule says, each whole or cut into pieces of one size.
// What lies there and is no longer wanted gives way, the longest unused first; what a stream still
// wants does not, for that would be read twice.
#include <stddef.h>
#include <string.h>

#include "layers/bufa/state.h"
#include "base/syscall.h"

namespace weir::layers::bufa {
namespace {

constexpr uint64_t kStale = 64;  // requests after which a stream that stood still is forgotten

bool wanted(const State& s, const Segment& g) {
  if (g.loading && !pool::idle(g.job)) return true;
  return !g.spent && g.stream >= 0 && s.reader->clock - s.reader->streams[g.stream].stamp < kStale;
}

uint32_t piece_count(const State& s, uint64_t piece_bytes) {
  const uint64_t n = s.block_bytes / piece_bytes;
  return static_cast<uint32_t>(n < kPiecesOfBlock ? n : kPiecesOfBlock);
}

// Memory of a reader that is gone, for the next of the same size: fresh pages cost more than what
// is read into them from the kernel's.
constexpr uint64_t kKept = 32u << 20;
constinit Reader* kept = nullptr;

// null: there is none that fits.
Reader* take_kept(uint64_t bytes) {
  Reader* const r = base::exchange(&kept, static_cast<Reader*>(nullptr));
  if (r == nullptr || r->memory_bytes == bytes) return r;
  base::unmap(r, r->memory_bytes);
  return nullptr;
}

void clear_tables(Reader* r) {
  memset(static_cast<void*>(r->segments), 0, r->high * sizeof r->segments[0]);
  memset(static_cast<void*>(r->blocks), 0, sizeof *r - offsetof(Reader, blocks));
}

// A place in the table; null: all in use by what is wanted.
Segment* free_place(State& s) {
  Reader& r = *s.reader;
  for (uint32_t i = 0; i < kSegments; ++i) {
    if (r.segments[i].used) continue;
    if (i >= r.high) r.high = i + 1;
    return &r.segments[i];
  }
  Segment* oldest = nullptr;
  for (uint32_t i = 0; i < kSegments; ++i) {
    Segment& g = r.segments[i];
    if (!wanted(s, g) && (oldest == nullptr || g.stamp < oldest->stamp)) oldest = &g;
  }
  if (oldest != nullptr) drop(s, *oldest);
  return oldest;
}

// Frees the block whose segments are the longest unused. -1: each has one that is wanted.
int free_block(State& s) {
  Reader& r = *s.reader;
  uint64_t youngest[kBuffers];  // 0: wanted
  for (uint32_t b = 0; b < s.buffers; ++b) {
    if (r.blocks[b].taken == 0) return static_cast<int>(b);
    youngest[b] = 1;
  }
  for (uint32_t i = 0; i < r.high; ++i) {
    const Segment& g = r.segments[i];
    if (!g.used) continue;
    uint64_t& seen = youngest[g.block];
    if (wanted(s, g)) seen = 0;
    else if (seen != 0 && g.stamp + 1 > seen) seen = g.stamp + 1;
  }
  int best = -1;
  for (uint32_t b = 0; b < s.buffers; ++b) {
    if (youngest[b] != 0 && (best < 0 || youngest[b] < youngest[best])) best = static_cast<int>(b);
  }
  if (best < 0) return -1;
  for (uint32_t i = 0; i < r.high; ++i) {
    Segment& g = r.segments[i];
    if (g.used && g.block == static_cast<uint32_t>(best)) drop(s, g);
  }
  return best;
}

// A piece of a block that is cut into such already, and has one free or no longer wanted.
bool find_piece(State& s, uint32_t piece_bytes, uint32_t* block, uint32_t* piece) {
  Reader& r = *s.reader;
  const uint32_t pieces = piece_count(s, piece_bytes);
  const uint64_t all = pieces == 64 ? ~uint64_t{0} : (uint64_t{1} << pieces) - 1;
  for (uint32_t b = 0; b < s.buffers; ++b) {
    if (r.blocks[b].piece_bytes != piece_bytes || r.blocks[b].taken == 0 ||
        r.blocks[b].taken == all)
      continue;
    *block = b;
    *piece = static_cast<uint32_t>(__builtin_ctzll(~r.blocks[b].taken));
    return true;
  }
  Segment* oldest = nullptr;
  for (uint32_t i = 0; i < r.high; ++i) {
    Segment& g = r.segments[i];
    if (!g.used || r.blocks[g.block].piece_bytes != piece_bytes || wanted(s, g)) continue;
    if (oldest == nullptr || g.stamp < oldest->stamp) oldest = &g;
  }
  if (oldest == nullptr) return false;
  *block = oldest->block;
  *piece = oldest->piece;
  drop(s, *oldest);
  return true;
}

}  // namespace

bool begin_reader(State& s) {
  if (s.reader != nullptr) return true;
  const uint64_t tables = round_up(sizeof(Reader), kPage);
  const uint64_t bytes = tables + s.block_bytes * s.buffers;
  s.reader = take_kept(bytes);
  if (s.reader != nullptr) {
    clear_tables(s.reader);
  } else {
    const long memory =
        base::map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (base::failed(memory)) return false;
    s.reader = reinterpret_cast<Reader*>(memory);
  }
  s.reader->memory = reinterpret_cast<char*>(s.reader) + tables;
  s.reader->memory_bytes = bytes;
  s.reader->clock = kStale;
  s.reader->balance = {};
  s.reader->strided_seen = s.reader->strided_wasted = 0;
  for (Stream& stream : s.reader->streams) stream.shape = Shape::kNone;
  return true;
}

void end_reader(State& s) {
  if (s.reader == nullptr) return;
  Reader* gone = s.reader;
  s.reader = nullptr;
  if (gone->memory_bytes <= kKept) gone = base::exchange(&kept, gone);
  if (gone != nullptr) base::unmap(gone, gone->memory_bytes);
}

Segment* allocate(State& s, uint64_t bytes, uint64_t piece_bytes, int stream) {
  Reader& r = *s.reader;
  Segment* g = free_place(s);
  if (g == nullptr) return nullptr;
  const bool whole = piece_bytes >= s.block_bytes;
  const auto size = static_cast<uint32_t>(whole ? s.block_bytes : piece_bytes);
  uint32_t block = 0, piece = 0;
  if (whole || !find_piece(s, size, &block, &piece)) {
    const int found = free_block(s);
    if (found < 0) return nullptr;
    block = static_cast<uint32_t>(found);
    piece = 0;
    r.blocks[block] = {0, size};
  }
  r.blocks[block].taken |= uint64_t{1} << piece;
  *g = Segment{};
  g->layer = s.layer;
  g->memory = r.memory + s.block_bytes * block + uint64_t{size} * piece;
  g->wanted = static_cast<uint32_t>(bytes);
  g->capacity = size;
  g->block = block;
  g->piece = static_cast<uint8_t>(piece);
  g->stream = static_cast<int8_t>(stream);
  g->stamp = r.clock;
  g->used = true;
  r.balance.asked += bytes;
  return g;
}

namespace {

// What the program left out of what it walked over since the window was opened.
uint64_t gaps_of_window(const State& s, bool forward) {
  const uint64_t hits = s.layer->statistics[kHits] - s.window_hits;
  const uint64_t walked = forward ? difference(s.window_end, s.window_from)
                                  : difference(s.window_from, s.window_begin);
  return smaller(difference(walked, s.window_served), hits * kPage);
}

}  // namespace

void close_window(State& s) {
  if (s.window_segment < 0) return;
  Segment& g = s.reader->segments[s.window_segment];
  g.served += s.window_served;
  s.reader->balance.served += s.window_served;
  if (g.stream >= 0) {
    Stream& stream = s.reader->streams[g.stream];
    stream.taken += s.window_served;
    s.reader->balance.gaps += gaps_of_window(s, stream.shape == Shape::kForward);
    if (stream.shape == Shape::kForward) stream.next = s.window_end;
    if (stream.shape == Shape::kBackward) stream.next = s.window_begin;
  }
  s.window_bytes = 0;
  s.window_served = 0;
  s.window_segment = -1;
}

void drop(State& s, Segment& g) {
  if (g.loading) settle(s, g);
  if (s.window_segment >= 0 && &g == &s.reader->segments[s.window_segment]) close_window(s);
  if (g.valid > g.served) count(*s.layer, kReadAheadWasted, g.valid - g.served);
  if (g.strided && g.served == 0) ++s.reader->strided_wasted;
  s.reader->blocks[g.block].taken &= ~(uint64_t{1} << g.piece);
  g.used = false;
}

}  // namespace weir::layers::bufa
