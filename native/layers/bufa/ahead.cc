// SPDX-License-Identifier: Apache-2.0
// Reading ahead. Forward and backward streams get segments that end where blocks do, small ones first and then whole blocks, one,
// two, four ... of them ahead; strided ones get the pages of the pieces to come. What the request itself needs is read by the
// thread that asked, after the rest is under way.
#include "layers/bufa/state.h"

namespace weir::layers::bufa {
namespace {

constexpr uint64_t kActive = 64;  // requests since a stream's last one
constexpr uint32_t kMostAhead = 60;
constexpr uint64_t kStridedShown = 4;  // requests that show a strided stream

int number_of(const State& s, const Stream& st) { return static_cast<int>(&st - s.reader->streams); }

uint32_t active_streams(const State& s) {
  uint32_t n = 0;
  for (const Stream& st : s.reader->streams) n += st.shape != Shape::kNone && s.reader->clock - st.stamp < kActive;
  return n == 0 ? 1 : n;
}

// The most that one segment of a stream may have. With more streams than pairs of blocks they share the memory in smaller pieces.
uint64_t chunk_limit(const State& s, uint32_t streams) {
  if (quick(s)) return kQuickChunk < s.block_bytes ? kQuickChunk : s.block_bytes;
  if (streams == 1 || 2 * streams <= s.buffers) return s.block_bytes;
  const uint64_t share = s.block_bytes * s.buffers / (2 * streams);
  uint64_t chunk = kPage;
  while (chunk * 2 <= share) chunk *= 2;
  return chunk < s.block_bytes ? chunk : s.block_bytes;
}

uint32_t window_limit(const State& s, uint32_t streams, uint64_t chunk) {
  if (quick(s)) return 0;
  const uint64_t segments = s.buffers * (s.block_bytes / chunk) / streams;
  if (segments <= 1) return 0;
  return segments - 1 < kMostAhead ? static_cast<uint32_t>(segments - 1) : kMostAhead;
}

void start(Segment& g, Layer& l) {
  count(l, kReadAheadRequests);
  g.loading = true;
  g.job.run = [](pool::Job* job) { load(*reinterpret_cast<Segment*>(job)); };
  State& s = state_of(l);
  if (!submit(s, g.job)) settle(s, g);
}

// A segment for [begin, end), as far as neither dirty bytes nor other segments lie there; null: nothing at its beginning.
Segment* make(State& s, uint64_t begin, uint64_t end, uint64_t piece_bytes, int stream) {
  if (const WriteBlock* b = first_dirty(s, begin, end - begin); b != nullptr) {
    if (b->offset <= begin) return nullptr;
    end = b->offset;
  }
  for (uint32_t i = 0; i < s.reader->high; ++i) {
    const Segment& other = s.reader->segments[i];
    if (other.used && other.offset > begin && other.offset < end) end = other.offset;
  }
  Segment* g = allocate(s, end - begin, piece_bytes, stream);
  if (g != nullptr) g->offset = begin;
  return g;
}

// Looks over a stream's segments: those that it has passed may go, those before it are counted.
uint32_t survey(State& s, int stream, bool forward, uint64_t offset, uint64_t bytes) {
  uint32_t ahead = 0;
  for (uint32_t i = 0; i < s.reader->high; ++i) {
    Segment& g = s.reader->segments[i];
    if (!g.used || g.stream != stream) continue;
    const bool before = g.offset + g.wanted <= offset, after = g.offset >= offset + bytes;
    if (forward ? before : after) g.spent = true;
    else ahead += forward ? after : before;
  }
  return ahead;
}

// A stream that comes to a segment for the first time has earned more of them.
void grow(State& s, Stream& st, uint64_t offset, uint32_t limit) {
  const Segment* g = find(s, offset);
  if (g != nullptr && g->served != 0) return;
  st.window = st.window == 0 ? 1 : st.window * 2;
  if (st.window > limit) st.window = limit;
}

void restart(State& s, Stream& st, uint64_t at) {
  st.ahead = at;
  st.chunk = quick(s) ? kQuickChunk : kFirstChunk;
  st.window = 0;
}

// A stream that has come to an end of the file wants nothing more: whoever reads the file again begins another one, which is to
// find the memory free.
void retire_ended(State& s) {
  Reader& r = *s.reader;
  for (Stream& st : r.streams) {
    const bool ended = (st.shape == Shape::kForward && st.next >= s.known_size) || (st.shape == Shape::kBackward && st.next == 0);
    if (!ended) continue;
    for (uint32_t i = 0; i < r.high; ++i) {
      if (r.segments[i].used && r.segments[i].stream == number_of(s, st)) r.segments[i].stream = -1;
    }
    st.shape = Shape::kNone;
  }
}

struct Limits {
  uint64_t chunk;
  uint32_t window;
};
Limits limits_of(const State& s) {
  const uint32_t streams = active_streams(s);
  const uint64_t chunk = chunk_limit(s, streams);
  return {chunk, window_limit(s, streams, chunk)};
}

void plan_forward(Layer& l, Stream& st, uint64_t offset, uint64_t bytes) {
  State& s = state_of(l);
  const int stream = number_of(s, st);
  uint32_t ahead = survey(s, stream, true, offset, bytes);
  const Limits limits = limits_of(s);
  if (st.ahead + st.chunk < offset || find(s, offset) == nullptr) {
    if (st.ahead + st.chunk < offset) restart(s, st, offset);
    st.ahead = round_down(offset, kPage);
  }
  if (st.chunk > limits.chunk) st.chunk = limits.chunk;
  Segment* mine = nullptr;
  while (st.ahead < s.known_size) {
    const bool needed = st.ahead < offset + bytes;
    if (!needed && ahead >= st.window) break;
    if (const Segment* there = find(s, st.ahead); there != nullptr) {
      st.ahead = there->offset + there->wanted;
      continue;
    }
    uint64_t end = (st.ahead / st.chunk + 1) * st.chunk;
    const uint64_t block_end = (st.ahead / s.block_bytes + 1) * s.block_bytes;
    if (end > block_end) end = block_end;
    if (end > s.known_size) end = s.known_size;
    Segment* g = make(s, st.ahead, end, limits.chunk, stream);
    if (g == nullptr) break;
    if (needed && mine == nullptr) mine = g;
    else start(*g, l);
    st.ahead = g->offset + g->wanted;
    ahead += !needed;
    st.chunk = st.chunk * 4 < limits.chunk ? st.chunk * 4 : limits.chunk;
  }
  if (mine != nullptr) {
    load(*mine);
    settle(s, *mine);
  }
  st.next = offset + bytes;
}

void plan_backward(Layer& l, Stream& st, uint64_t offset, uint64_t bytes) {
  State& s = state_of(l);
  const int stream = number_of(s, st);
  const uint64_t last = offset + bytes - 1;
  uint32_t ahead = survey(s, stream, false, offset, bytes);
  const Limits limits = limits_of(s);
  if (last >= s.known_size) return;
  if (st.ahead > offset + bytes + st.chunk || find(s, last) == nullptr) {
    if (st.ahead > offset + bytes + st.chunk) restart(s, st, 0);
    st.ahead = round_up(offset + bytes, kPage);
    if (st.ahead > s.known_size) st.ahead = s.known_size;
  }
  if (st.chunk > limits.chunk) st.chunk = limits.chunk;
  Segment* mine = nullptr;
  while (st.ahead > 0) {
    const bool needed = st.ahead > offset;
    if (!needed && ahead >= st.window) break;
    if (const Segment* there = find(s, st.ahead - 1); there != nullptr) {
      st.ahead = there->offset;
      continue;
    }
    uint64_t begin = round_down(st.ahead - 1, st.chunk);
    const uint64_t block_begin = round_down(st.ahead - 1, s.block_bytes);
    if (begin < block_begin) begin = block_begin;
    // make() cuts off what lies behind the first obstacle; here the end is what is needed.
    Segment* g = first_dirty(s, begin, st.ahead - begin) == nullptr ? make(s, begin, st.ahead, limits.chunk, stream) : nullptr;
    if (g == nullptr || g->offset + g->wanted != st.ahead) {
      if (g != nullptr) drop(s, *g);
      break;
    }
    if (needed && mine == nullptr) mine = g;
    else start(*g, l);
    st.ahead = begin;
    ahead += !needed;
    st.chunk = st.chunk * 4 < limits.chunk ? st.chunk * 4 : limits.chunk;
  }
  if (mine != nullptr) {
    load(*mine);
    settle(s, *mine);
  }
  st.next = offset;
}

// How many segments read ahead of this strided stream may turn out to be in vain, for others have been or may be.
uint64_t may_waste(const Reader& r, int stream) {
  uint64_t wasted = r.strided_wasted;
  for (uint32_t i = 0; i < r.high; ++i) {
    const Segment& g = r.segments[i];
    wasted += g.used && g.strided && g.served == 0 && g.stream != stream;
  }
  const uint64_t share = r.strided_seen / kStridedSeen, most = share > kStridedWaste ? share : kStridedWaste;
  return most > wasted ? most - wasted : 0;
}

// How far ahead of a strided stream: no further than it has come, nor than the last one with this step came.
uint32_t strided_window(const Stream& st, uint64_t may_waste) {
  uint64_t most = st.run;
  if (st.expected != 0) most = st.run <= st.expected ? st.expected - st.run : st.run - st.expected;
  if (most > st.run) most = st.run;
  if (most > may_waste) most = may_waste;
  return most < st.window ? static_cast<uint32_t>(most) : st.window;
}

// How many requests the last stream with this step had, when nothing has come of it while another showed itself. 0: not known.
uint64_t last_run(const Reader& r, int64_t step, uint64_t bytes) {
  const Stream* last = nullptr;
  for (const Stream& st : r.streams) {
    if (st.shape != Shape::kStrided || st.step != step || st.bytes != bytes) continue;
    if (last == nullptr || st.stamp > last->stamp) last = &st;
  }
  if (last == nullptr) return 0;
  return r.clock - last->stamp >= kStridedShown ? last->run : last->expected;
}

void plan_strided(Layer& l, Stream& st, uint64_t offset, uint64_t bytes) {
  State& s = state_of(l);
  const int stream = number_of(s, st);
  survey(s, stream, st.step > 0, offset, bytes);
  // Pieces at multiples of the page, and of one size.
  uint64_t piece = st.step % static_cast<int64_t>(kPage) == 0 ? round_up(offset % kPage + bytes, kPage) : round_up(bytes, kPage) + kPage;
  if (piece > s.block_bytes) piece = s.block_bytes;
  const uint64_t of_block = s.block_bytes / piece < kPiecesOfBlock ? s.block_bytes / piece : kPiecesOfBlock;
  uint64_t most = s.buffers * of_block / active_streams(s);
  if (most > kStridedAhead) most = kStridedAhead;
  if (st.window > most) st.window = static_cast<uint32_t>(most);
  Segment* mine = nullptr;
  // How many steps ahead has been asked for already.
  int64_t done = static_cast<int64_t>(st.ahead - offset) / st.step - 1;
  if (done < 0 || done > kStridedAhead) done = 0;
  if (find(s, offset) == nullptr) done = -1;
  const uint32_t window = strided_window(st, may_waste(*s.reader, stream));
  for (int64_t i = done + 1; i <= static_cast<int64_t>(window); ++i) {
    const auto at = static_cast<int64_t>(offset) + i * st.step;
    if (at < 0 || static_cast<uint64_t>(at) >= s.known_size) break;
    const uint64_t begin = round_down(static_cast<uint64_t>(at), kPage);
    uint64_t end = round_up(static_cast<uint64_t>(at) + bytes, kPage);
    if (end > s.known_size) end = s.known_size;
    if (end - begin > piece) end = begin + piece;
    if (find(s, static_cast<uint64_t>(at)) == nullptr) {
      Segment* g = make(s, begin, end, piece, stream);
      if (g == nullptr) break;
      if (i == 0) {
        mine = g;
      } else {
        g->strided = true;
        start(*g, l);
      }
    }
    st.ahead = static_cast<uint64_t>(at + st.step);
  }
  if (mine != nullptr) {
    load(*mine);
    settle(s, *mine);
  }
  st.next = offset + static_cast<uint64_t>(st.step);
}

}  // namespace

Segment* find(const State& s, uint64_t offset) {
  Reader& r = *s.reader;
  for (uint32_t i = 0; i < r.high; ++i) {
    Segment& g = r.segments[i];
    if (g.used && offset - g.offset < g.wanted) return &g;
  }
  return nullptr;
}

Stream* expecting(State& s, uint64_t offset, uint64_t bytes) {
  Reader& r = *s.reader;
  for (Stream& st : r.streams) {
    switch (st.shape) {
      case Shape::kNone: continue;
      case Shape::kForward:
        if (st.next == offset) return &st;
        continue;
      case Shape::kBackward:
        if (st.next == offset + bytes) return &st;
        continue;
      case Shape::kStrided:
        if (st.next == offset && st.bytes == bytes) return &st;
        continue;
    }
  }
  // Not quite what was expected, but within what was read ahead.
  const Segment* g = find(s, offset);
  if (g == nullptr || g->stream < 0) return nullptr;
  return r.streams[g->stream].shape == Shape::kNone ? nullptr : &r.streams[g->stream];
}

Stream* begin_stream(State& s, Found found, uint64_t offset, uint64_t bytes) {
  Reader& r = *s.reader;
  retire_ended(s);
  Stream* st = &r.streams[0];
  for (Stream& other : r.streams) {
    if (other.shape == Shape::kNone || (st->shape != Shape::kNone && other.stamp < st->stamp)) st = &other;
    if (st->shape == Shape::kNone) break;
  }
  const int stream = number_of(s, *st);
  for (uint32_t i = 0; i < r.high; ++i) {
    if (r.segments[i].used && r.segments[i].stream == stream) r.segments[i].stream = -1;
  }
  const uint64_t expected = found.shape == Shape::kStrided ? last_run(r, found.step, bytes) : 0;
  *st = {found.shape, found.step, bytes, kStridedShown, expected, offset, 0, 0, 0, r.clock};
  restart(s, *st, found.shape == Shape::kForward ? round_down(offset, kPage) : round_up(offset + bytes, kPage));
  if (found.shape == Shape::kStrided) {
    st->ahead = offset;
    st->window = 1;
  } else {
    // Large requests are not cut into small ones.
    while (!quick(s) && st->chunk < bytes && st->chunk < s.block_bytes) st->chunk *= 2;
  }
  return st;
}

void plan(Layer& l, Stream& st, uint64_t offset, uint64_t bytes) {
  State& s = state_of(l);
  const bool begun = st.stamp != s.reader->clock;  // with an earlier request
  st.stamp = s.reader->clock;
  if (begun) {
    const Limits limits = limits_of(s);
    if (st.shape == Shape::kStrided) {
      ++st.run;
      ++s.reader->strided_seen;
      st.window = st.window * 4 < kStridedAhead ? st.window * 4 : kStridedAhead;
    }
    if (st.shape != Shape::kStrided) grow(s, st, st.shape == Shape::kForward ? offset : offset + bytes - 1, limits.window);
  }
  switch (st.shape) {
    case Shape::kNone: return;
    case Shape::kForward: return plan_forward(l, st, offset, bytes);
    case Shape::kBackward: return plan_backward(l, st, offset, bytes);
    case Shape::kStrided: return plan_strided(l, st, offset, bytes);
  }
}

}  // namespace weir::layers::bufa
