// SPDX-License-Identifier: Apache-2.0
// Reading: from the window (the segment that the last request was in), from other segments, from
// bytes not yet written, from below.
#include <fcntl.h>
#include <string.h>

#include "layers/bufa/cursor.h"
#include "layers/bufa/state.h"
#include "base/futex.h"

namespace weir::layers::bufa {
namespace {

// Other nodes' bytes behind the end are seen after so long.
constexpr uint64_t kEndValidNs = 1'000'000'000;

// Whether the file below has nothing from `offset` on: all of it was written through here. Only for
// who writes it; a reader asks.
bool nothing_below(const Layer& l, const State& s, uint64_t offset) {
  return offset >= s.below_end && (l.file->flags & O_ACCMODE) == O_RDWR &&
         now_ns() - s.below_ns < kEndValidNs;
}

// No request that may lengthen the file is under way, and none begins while the file's lock is
// held.
bool is_settled(const State& s) { return !any_dirty(s) && base::load(&s.passing) == 0; }

// What a read from below says of the end. settled: when it began, and since.
void learn_end(State& s, uint64_t offset, Result got, bool settled) {
  if (got < 0) return;
  if (got == 0 && settled && s.below_end == kUnknownEnd) s.below_end = offset;
  if (got > 0 && s.below_end != kUnknownEnd) raise_end(s, offset + static_cast<uint64_t>(got));
  if (got == 0) s.below_ns = now_ns();
}

// One piece of memory from below, with what is dirty laid over it. 0 at the end of the file.
Result read_under(Layer& l, char* to, uint64_t bytes, uint64_t offset) {
  State& s = state_of(l);
  const uint64_t end = dirty_end(s);
  if (end <= offset) {
    if (nothing_below(l, s, offset)) return 0;
    count(l, kSystemReads);
    const bool settled = is_settled(s);
    const Result got = stack::read_below(l, to, bytes, offset);
    learn_end(s, offset, got, settled);
    return got;
  }
  // Dirty bytes that cover all of it need nothing from below.
  if (const WriteBlock* b = first_dirty(s, offset, bytes); b != nullptr) {
    const uint32_t in = offset > b->offset ? static_cast<uint32_t>(offset - b->offset) : 0;
    writeback::Range range;
    if (b->offset <= offset && next_range(s, *b, in, &range) && range.lo == in) {
      const uint64_t n = smaller(bytes, range.hi - in);
      memcpy(to, b->data + in, n);
      return static_cast<Result>(n);
    }
  }
  uint64_t got = 0;
  while (got < bytes && !nothing_below(l, s, offset + got)) {
    count(l, kSystemReads);
    const Result part = stack::read_below(l, to + got, bytes - got, offset + got);
    learn_end(s, offset + got, part, false);
    if (part < 0) return part;
    if (part == 0) break;
    got += static_cast<uint64_t>(part);
  }
  // Behind the end of the file as it is on disk: zeros up to the dirty bytes.
  const uint64_t there = smaller(bytes, end - offset);
  if (got < there) {
    memset(to + got, 0, there - got);
    got = there;
  }
  overlay(s, to, got, offset);
  return static_cast<Result>(got);
}

// All of a request from below; nothing of it is kept.
Result read_past(Layer& l, const Transfer& t) {
  State& s = state_of(l);
  Result result = 0;
  if (dirty_end(s) <= t.offset) {
    result = pass_read(l, t, true);
    learn_end(s, t.offset, result, false);
  } else {
    Cursor to(t);
    uint64_t done = 0;
    while (done < t.bytes) {
      const Result got = read_under(l, to.at(), to.room(), t.offset + done);
      if (got < 0 && done == 0) return got;
      if (got <= 0) break;
      done += static_cast<uint64_t>(got);
      to.advance(static_cast<uint64_t>(got), done == t.bytes);
    }
    result = static_cast<Result>(done);
  }
  return result;
}

// The file is longer than it was: reading ahead may go on.
void learn_size(Layer& l, uint64_t end) {
  State& s = state_of(l);
  if (end <= s.known_size) return;
  const Result size = stack::size_below(l);
  s.known_size = size > 0 && static_cast<uint64_t>(size) > end ? static_cast<uint64_t>(size) : end;
}

void open_window(State& s, Segment& g, const Transfer& t) {
  s.window_segment = static_cast<int32_t>(&g - s.reader->segments);
  s.window_offset = g.offset;
  s.window_bytes = g.valid;
  s.window_memory = g.memory;
  s.window_begin = t.offset;
  s.window_end = t.offset + t.bytes;
  s.window_served = 0;
  const bool backward = g.stream >= 0 && s.reader->streams[g.stream].shape == Shape::kBackward;
  s.window_from = backward ? s.window_begin : s.window_end;
  s.window_hits = s.layer->statistics[kHits];
}

// From segments where there are some, from below where there are none.
Result serve(Layer& l, const Transfer& t, Stream& st) {
  State& s = state_of(l);
  const Shape shape = st.shape;
  Cursor to(t);
  uint64_t done = 0;
  Segment* last = nullptr;
  bool all = true;
  while (done < t.bytes) {
    const uint64_t at = t.offset + done;
    uint64_t most = smaller(to.room(), t.bytes - done);
    Segment* g = find(s, at);
    if (g != nullptr) {
      if (g->loading) settle(s, *g);
      if (at - g->offset < g->valid) {
        most = smaller(most, g->valid - (at - g->offset));
        memcpy(to.at(), g->memory + (at - g->offset), most);
        g->served += most;
        s.reader->balance.served += most;
        g->stamp = s.reader->clock;
        done += most;
        to.advance(most, done == t.bytes);
        last = g;
        continue;
      }
      // It failed or came to an end: the program asks itself, and hears the error.
      drop(s, *g);
      if (last == g) last = nullptr;
    }
    all = false;
    const Result got = read_under(l, to.at(), most, at);
    if (got < 0 && done == 0) return got;
    if (got <= 0) break;
    done += static_cast<uint64_t>(got);
    s.reader->balance.passed += static_cast<uint64_t>(got);
    to.advance(static_cast<uint64_t>(got), done == t.bytes);
    learn_size(l, at + static_cast<uint64_t>(got));
  }
  st.taken += done;
  count(l, all ? kHits : kMisses);
  if (last != nullptr && last->used) {
    if (shape == Shape::kStrided) last->spent = true;
    else if (done == t.bytes) open_window(s, *last, t);
  }
  return static_cast<Result>(done);
}

// By the stream that expected the request, or the one that it begins; null: neither.
Stream* stream_for(Layer& l, const Transfer& t) {
  State& s = state_of(l);
  if (Stream* const found = s.reader == nullptr ? nullptr : expecting(s, t.offset, t.bytes);
      found != nullptr)
    return found;
  const Found found = s.history.add(t.offset, t.bytes);
  const bool helps =
      found.shape != Shape::kNone && (found.shape != Shape::kStrided || !quick(s) || s.always);
  const bool worth = s.always || s.spent_ns >= kWorthNs;
  if (helps && worth && stack::begin_to_hold(l)) {
    const Changing changing;
    if (begin_reader(s)) return begin_stream(s, found, t.offset, t.bytes);
  }
  if (!helps) of_no_use(l, found.shape == Shape::kNone ? Reason::kRandom : Reason::kCached);
  return nullptr;
}

Result read_planned(Layer& l, const Transfer& t, Stream& st) {
  const Changing changing;
  // A second field of the same record, say: it is there already, and says nothing of what comes.
  const bool expected = st.shape != Shape::kStrided || st.next == t.offset;
  if (!expected || plan(l, st, t.offset, t.bytes)) state_of(l).useless = 0;
  else of_no_use(l, Reason::kRandom);
  return serve(l, t, st);
}

Result read_slowly(Layer& l, const Transfer& t) {
  State& s = state_of(l);
  if (t.offset >= s.below_end && nothing_below(l, s, t.offset) && dirty_end(s) <= t.offset) {
    count(l, kHits);
    return 0;
  }
  if (s.reader != nullptr) {
    close_window(s);
    ++s.reader->clock;
  }
  const bool large = t.bytes >= s.block_bytes / 2;
  if (large || (quick(s) && t.bytes > kQuickRequest && !s.always)) {
    of_no_use(l, large ? Reason::kLargeRequests : Reason::kCached);
    return read_past(l, t);
  }
  if (Stream* const st = stream_for(l, t); st != nullptr) return read_planned(l, t, *st);
  const Result result = read_past(l, t);
  if (result > 0) learn_size(l, t.offset + static_cast<uint64_t>(result));
  return result;
}

}  // namespace

Result read(Layer& l, const Transfer& t) {
  State& s = state_of(l);
  const uint64_t in = t.offset - s.window_offset;
  if (WEIR_LIKELY(in < s.window_bytes && t.bytes <= s.window_bytes - in && t.count == 1)) {
    memcpy(t.pieces->iov_base, s.window_memory + in, t.bytes);
    s.window_begin = t.offset;
    s.window_end = t.offset + t.bytes;
    s.window_served += t.bytes;
    count(l, kHits);
    return static_cast<Result>(t.bytes);
  }
  return read_slowly(l, t);
}

void load(Segment& g) {
  Layer& l = *g.layer;
  const uint64_t began = now_ns();
  uint32_t valid = 0, requests = 0;
  while (valid < g.wanted) {
    const iovec piece{g.memory + valid, g.wanted - valid};
    ++requests;
    const int twin = descriptor_for(state_of(l), piece.iov_base, piece.iov_len, g.offset + valid);
    const Result got =
        stack::read_below(l, Transfer{&piece, 1, piece.iov_len, g.offset + valid, twin});
    if (got <= 0) break;
    valid += static_cast<uint32_t>(got);
  }
  g.valid = valid;
  g.took_ns = now_ns() - began;
  count_shared(l, kSystemReads, requests);
  count_shared(l, kReadAhead, valid);
}

void settle(State& s, Segment& g) {
  wait_for(*s.layer, g.job);
  g.loading = false;
  learn(s, g.valid, g.took_ns);
}

void drop_all(Layer& l) {
  const Changing changing;
  State& s = state_of(l);
  s.history.clear();
  if (s.reader != nullptr) {
    close_window(s);
    for (uint32_t i = 0; i < s.reader->high; ++i) {
      if (s.reader->segments[i].used) drop(s, s.reader->segments[i]);
    }
    for (Stream& st : s.reader->streams) st.shape = Shape::kNone;
  }
  wait_for_passing(s);
}

void patch(Layer& l, const char* data, uint64_t bytes, uint64_t offset) {
  State& s = state_of(l);
  for (uint32_t i = 0; i < s.reader->high; ++i) {
    Segment& g = s.reader->segments[i];
    if (!g.used || g.offset >= offset + bytes || g.offset + g.wanted <= offset) continue;
    if (g.loading) settle(s, g);
    const uint64_t from = g.offset > offset ? g.offset : offset;
    const uint64_t to = smaller(g.offset + g.valid, offset + bytes);
    if (from < to) memcpy(g.memory + (from - g.offset), data + (from - offset), to - from);
  }
}

}  // namespace weir::layers::bufa
