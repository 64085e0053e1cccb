// SPDX-License-Identifier: Apache-2.0
// Reading ahead. Forward and backward streams get segments that end where blocks do, small ones
// first and then whole blocks, one, two, four ... of them ahead, and never more bytes than the
// program has taken; strided ones get the pages of the pieces to come. What the request itself
// needs is read by the thread that asked, after the rest is under way.
#include "layers/bufa/state.h"

namespace weir::layers::bufa {
namespace {

constexpr uint64_t kActive = 64;  // requests since a stream's last one
constexpr uint32_t kMostAhead = 60;
constexpr uint64_t kStridedShown = 4;  // requests that show a strided stream

int number_of(const State& s, const Stream& st) {
  return static_cast<int>(&st - s.reader->streams);
}

uint32_t active_streams(const State& s) {
  uint32_t n = 0;
  for (const Stream& st : s.reader->streams)
    n += st.shape != Shape::kNone && s.reader->clock - st.stamp < kActive;
  return n == 0 ? 1 : n;
}

// The most that one segment of a stream may have. With more streams than pairs of blocks they share
// the memory in smaller pieces.
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

// A segment for [begin, end), as far as neither dirty bytes nor other segments lie there; null:
// nothing at its beginning.
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

struct Ahead {
  uint32_t segments;
  uint64_t bytes;  // behind the request, also of the segment that it is in
};

// Looks over a stream's segments: those that it has passed may go, those before it are counted.
Ahead survey(State& s, int stream, bool forward, uint64_t offset, uint64_t bytes) {
  Ahead ahead{0, 0};
  for (uint32_t i = 0; i < s.reader->high; ++i) {
    Segment& g = s.reader->segments[i];
    if (!g.used || g.stream != stream) continue;
    const uint64_t end = g.offset + g.wanted;
    const bool before = end <= offset, after = g.offset >= offset + bytes;
    if (forward ? before : after) {
      g.spent = true;
      continue;
    }
    ahead.segments += forward ? after : before;
    if (after || before) ahead.bytes += g.wanted;
    else ahead.bytes += forward ? difference(end, offset + bytes) : difference(offset, g.offset);
  }
  return ahead;
}

// How many bytes may be asked for: of a stream beyond its request, and of the opening, those of the
// request among them.
struct Room {
  uint64_t stream, opening;
};

uint64_t allowance(const State& s, uint64_t taken) {
  return taken + (kAllowance < s.block_bytes ? kAllowance : s.block_bytes);
}

Room room_of(const State& s, const Stream& st, uint64_t ahead_bytes, uint64_t bytes) {
  const Balance& all = s.reader->balance;
  const uint64_t useful = all.served + bytes + all.gaps;
  return {difference(allowance(s, st.taken + bytes), ahead_bytes),
          difference(useful + allowance(s, all.served + all.passed + bytes), all.asked)};
}

// How long the next segment is: as its chunk has it, or the largest half, quarter ... of that for
// which there is room, with all that the request needs of it. 0: there is no room. What is not
// needed at all is not asked for in smaller pieces.
template <typename Length>
uint64_t fit(const Room& room, uint64_t chunk, uint64_t needed, Length length_at) {
  for (uint64_t bytes = length_at(chunk);;) {
    if (bytes <= room.opening && difference(bytes, needed) <= room.stream) return bytes;
    if (needed == 0 || chunk <= kPage) return 0;
    chunk = round_up(chunk / 2, kPage);
    const uint64_t shorter = length_at(chunk);
    if (shorter < needed) return 0;
    bytes = shorter;
  }
}

void use(Room& room, const Segment& g, uint64_t needed) {
  room.stream = difference(room.stream, difference(g.wanted, needed));
  room.opening = difference(room.opening, g.wanted);
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

// A stream that has come to an end of the file wants nothing more: whoever reads the file again
// begins another one, which is to find the memory free.
void retire_ended(State& s) {
  Reader& r = *s.reader;
  for (Stream& st : r.streams) {
    const bool ended = (st.shape == Shape::kForward && st.next >= s.known_size) ||
                       (st.shape == Shape::kBackward && st.next == 0);
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

void load_here(State& s, Segment* g) {
  if (g == nullptr) return;
  load(*g);
  settle(s, *g);
}

// Of segments that end with their chunk, their block or the file; backward they begin so.
uint64_t forward_length(const State& s, uint64_t at, uint64_t chunk) {
  uint64_t end = (at / chunk + 1) * chunk;
  const uint64_t block_end = (at / s.block_bytes + 1) * s.block_bytes;
  if (end > block_end) end = block_end;
  if (end > s.known_size) end = s.known_size;
  return end - at;
}
uint64_t backward_length(const State& s, uint64_t at, uint64_t chunk) {
  const uint64_t begin = round_down(at - 1, chunk), block_begin = round_down(at - 1, s.block_bytes);
  return at - (begin > block_begin ? begin : block_begin);
}

// What the program left out before this request, as far as reading it with the rest is of use.
void count_gap(State& s, const Stream& st, uint64_t gap) {
  if (gap <= st.gap) s.reader->balance.gaps += smaller(gap, kPage);
}

// One that was not asked for after all.
void drop_unread(State& s, Segment& g) {
  s.reader->balance.asked -= g.wanted;
  drop(s, g);
}

bool plan_forward(Layer& l, Stream& st, uint64_t offset, uint64_t bytes) {
  State& s = state_of(l);
  const int stream = number_of(s, st);
  Ahead ahead = survey(s, stream, true, offset, bytes);
  const Limits limits = limits_of(s);
  count_gap(s, st, offset - st.next);
  if (st.ahead + st.chunk < offset || find(s, offset) == nullptr) {
    if (st.ahead + st.chunk < offset) restart(s, st, offset);
    st.ahead = round_down(offset, kPage);
  }
  st.next = offset + bytes;
  if (st.chunk > limits.chunk) st.chunk = limits.chunk;
  Room room = room_of(s, st, ahead.bytes, bytes);
  Segment* mine = nullptr;
  bool fits = true;
  while (st.ahead < s.known_size) {
    const uint64_t needed = difference(offset + bytes, st.ahead);
    if (needed == 0 && ahead.segments >= st.window) break;
    if (const Segment* there = find(s, st.ahead); there != nullptr) {
      st.ahead = there->offset + there->wanted;
      continue;
    }
    const uint64_t length = fit(room, st.chunk, needed,
                                [&](uint64_t chunk) { return forward_length(s, st.ahead, chunk); });
    fits = length != 0 || needed == 0;
    Segment* g = length == 0 ? nullptr : make(s, st.ahead, st.ahead + length, limits.chunk, stream);
    if (g == nullptr) break;
    use(room, *g, needed);
    if (needed != 0 && mine == nullptr) mine = g;
    else start(*g, l);
    st.ahead = g->offset + g->wanted;
    ahead.segments += needed == 0;
    st.chunk = st.chunk * 4 < limits.chunk ? st.chunk * 4 : limits.chunk;
  }
  load_here(s, mine);
  return fits;
}

bool plan_backward(Layer& l, Stream& st, uint64_t offset, uint64_t bytes) {
  State& s = state_of(l);
  const int stream = number_of(s, st);
  const uint64_t last = offset + bytes - 1;
  Ahead ahead = survey(s, stream, false, offset, bytes);
  const Limits limits = limits_of(s);
  if (last >= s.known_size) return true;
  count_gap(s, st, st.next - last - 1);
  if (st.ahead > offset + bytes + st.chunk || find(s, last) == nullptr) {
    if (st.ahead > offset + bytes + st.chunk) restart(s, st, 0);
    st.ahead = round_up(offset + bytes, kPage);
    if (st.ahead > s.known_size) st.ahead = s.known_size;
  }
  st.next = offset;
  if (st.chunk > limits.chunk) st.chunk = limits.chunk;
  Room room = room_of(s, st, ahead.bytes, bytes);
  Segment* mine = nullptr;
  bool fits = true;
  while (st.ahead > 0) {
    const uint64_t needed = difference(st.ahead, offset);
    if (needed == 0 && ahead.segments >= st.window) break;
    if (const Segment* there = find(s, st.ahead - 1); there != nullptr) {
      st.ahead = there->offset;
      continue;
    }
    const uint64_t length = fit(room, st.chunk, needed, [&](uint64_t chunk) {
      return backward_length(s, st.ahead, chunk);
    });
    fits = length != 0 || needed == 0;
    const uint64_t begin = st.ahead - length;
    // make() cuts off what lies behind the first obstacle; here the end is what is needed.
    Segment* g = length != 0 && first_dirty(s, begin, length) == nullptr
                     ? make(s, begin, st.ahead, limits.chunk, stream)
                     : nullptr;
    if (g == nullptr || g->offset + g->wanted != st.ahead) {
      if (g != nullptr) drop_unread(s, *g);
      break;
    }
    use(room, *g, needed);
    if (needed != 0 && mine == nullptr) mine = g;
    else start(*g, l);
    st.ahead = begin;
    ahead.segments += needed == 0;
    st.chunk = st.chunk * 4 < limits.chunk ? st.chunk * 4 : limits.chunk;
  }
  load_here(s, mine);
  return fits;
}

// How many segments read ahead of this strided stream may turn out to be in vain, for others have
// been or may be.
uint64_t may_waste(const Reader& r, int stream) {
  uint64_t wasted = r.strided_wasted;
  for (uint32_t i = 0; i < r.high; ++i) {
    const Segment& g = r.segments[i];
    wasted += g.used && g.strided && g.served == 0 && g.stream != stream;
  }
  const uint64_t share = r.strided_seen / kStridedSeen,
                 most = share > kStridedWaste ? share : kStridedWaste;
  return difference(most, wasted);
}

// How far ahead of a strided stream: no further than it has come, nor than the last one with this
// step came.
uint32_t strided_window(const Stream& st, uint64_t may_waste) {
  uint64_t most = st.run;
  if (st.expected != 0) most = st.run <= st.expected ? st.expected - st.run : st.run - st.expected;
  if (most > st.run) most = st.run;
  if (most > may_waste) most = may_waste;
  return most < st.window ? static_cast<uint32_t>(most) : st.window;
}

// How many requests the last stream with this step had, when nothing has come of it while another
// showed itself. 0: not known.
uint64_t last_run(const Reader& r, int64_t step, uint64_t bytes) {
  const Stream* last = nullptr;
  for (const Stream& st : r.streams) {
    if (st.shape != Shape::kStrided || st.step != step || st.bytes != bytes) continue;
    if (last == nullptr || st.stamp > last->stamp) last = &st;
  }
  if (last == nullptr) return 0;
  return r.clock - last->stamp >= kStridedShown ? last->run : last->expected;
}

struct Part {
  uint64_t begin, end;
};

// A piece's pages, or where the rest of such pages was not used, the piece alone.
Part part_of(const State& s, const Room& room, uint64_t at, uint64_t bytes, uint64_t most) {
  Part part{round_down(at, kPage), round_up(at + bytes, kPage)};
  if (part.end - part.begin > difference(room.opening, allowance(s, 0) / 2))
    part = {at, at + bytes};
  if (part.end > s.known_size) part.end = s.known_size;
  if (part.end - part.begin > most) part.end = part.begin + most;
  return part;
}

bool plan_strided(Layer& l, Stream& st, uint64_t offset, uint64_t bytes) {
  State& s = state_of(l);
  const int stream = number_of(s, st);
  survey(s, stream, st.step > 0, offset, bytes);
  Room room = room_of(s, st, 0, bytes);
  // Pieces at multiples of the page, and of one size.
  uint64_t piece = st.step % static_cast<int64_t>(kPage) == 0
                       ? round_up(offset % kPage + bytes, kPage)
                       : round_up(bytes, kPage) + kPage;
  if (piece > s.block_bytes) piece = s.block_bytes;
  const uint64_t of_block =
      s.block_bytes / piece < kPiecesOfBlock ? s.block_bytes / piece : kPiecesOfBlock;
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
    if (find(s, static_cast<uint64_t>(at)) == nullptr) {
      const Part part = part_of(s, room, static_cast<uint64_t>(at), bytes, piece);
      Segment* g = part.end - part.begin > room.opening
                       ? nullptr
                       : make(s, part.begin, part.end, piece, stream);
      if (g == nullptr) break;
      use(room, *g, 0);
      if (i == 0) {
        mine = g;
      } else {
        g->strided = true;
        start(*g, l);
      }
    }
    st.ahead = static_cast<uint64_t>(at + st.step);
  }
  load_here(s, mine);
  st.next = offset + static_cast<uint64_t>(st.step);
  return true;
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
        if (offset - st.next <= st.gap) return &st;
        continue;
      case Shape::kBackward:
        if (st.next - offset - bytes <= st.gap) return &st;
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
    if (other.shape == Shape::kNone || (st->shape != Shape::kNone && other.stamp < st->stamp))
      st = &other;
    if (st->shape == Shape::kNone) break;
  }
  const int stream = number_of(s, *st);
  for (uint32_t i = 0; i < r.high; ++i) {
    if (r.segments[i].used && r.segments[i].stream == stream) r.segments[i].stream = -1;
  }
  const uint64_t expected = found.shape == Shape::kStrided ? last_run(r, found.step, bytes) : 0;
  const uint64_t gap =
      found.shape == Shape::kStrided || found.step == 0 ? 0 : gap_of(found.step, bytes);
  const uint64_t shown = found.step == 0 ? 1 : kStridedShown - 1,
                 next = found.shape == Shape::kBackward ? offset + bytes : offset;
  *st = {.shape = found.shape,
         .step = found.step,
         .gap = gap,
         .taken = shown * bytes,
         .bytes = bytes,
         .run = kStridedShown,
         .expected = expected,
         .next = next,
         .ahead = 0,
         .chunk = 0,
         .window = 0,
         .stamp = r.clock};
  r.balance.passed += st->taken;
  restart(
      s, *st,
      found.shape == Shape::kForward ? round_down(offset, kPage) : round_up(offset + bytes, kPage));
  if (found.shape == Shape::kStrided) {
    st->ahead = offset;
    st->window = 1;
  } else {
    // Large requests are not cut into small ones.
    while (!quick(s) && st->chunk < bytes && st->chunk < s.block_bytes) st->chunk *= 2;
  }
  return st;
}

bool plan(Layer& l, Stream& st, uint64_t offset, uint64_t bytes) {
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
    if (st.shape != Shape::kStrided)
      grow(s, st, st.shape == Shape::kForward ? offset : offset + bytes - 1, limits.window);
  }
  switch (st.shape) {
    case Shape::kNone: return true;
    case Shape::kForward: return plan_forward(l, st, offset, bytes);
    case Shape::kBackward: return plan_backward(l, st, offset, bytes);
    case Shape::kStrided: return plan_strided(l, st, offset, bytes);
  }
  return true;
}

}  // namespace weir::layers::bufa
