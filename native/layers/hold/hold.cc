// SPDX-License-Identifier: Apache-2.0
// hold:bytes keeps one run of written bytes and one of read bytes, each at most so long (16 without
// the argument), and the size. It believes what it knows until it is notified to forget, so that
// whoever forgets to tell it is found out.
#include "layers/hold/hold.h"

#include <string.h>

#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/file.h"

namespace weir::layers {
namespace {

using namespace stack;

constexpr uint64_t kMost = 4096;

struct State {
  uint64_t most;
  uint64_t size;
  bool knows_size;
  uint64_t dirty_at, dirty_bytes;
  uint64_t clean_at, clean_bytes;
  char dirty[kMost], clean[kMost];
};

State& state(Layer& l) { return *static_cast<State*>(l.state()); }
uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

Result create(Layer& l) {
  state(l).most = least(rules::argument(*l.spec, 0, 16), kMost);
  return 0;
}

Result known_size(Layer& l) {
  State& s = state(l);
  if (!s.knows_size) {
    const Result below = size_below(l);
    if (below < 0) return below;
    s.size = static_cast<uint64_t>(below);
    s.knows_size = true;
  }
  return static_cast<Result>(s.size);
}

Result drain(Layer& l) {
  State& s = state(l);
  while (s.dirty_bytes != 0) {
    const Result r = write_below(l, s.dirty, s.dirty_bytes, s.dirty_at);
    if (r <= 0) {
      defer_error(l, r < 0 ? static_cast<int>(-r) : 5, s.dirty_bytes);
      s.dirty_bytes = 0;
      s.knows_size = false;
      return r < 0 ? r : -5;
    }
    s.dirty_at += static_cast<uint64_t>(r);
    s.dirty_bytes -= static_cast<uint64_t>(r);
    memmove(s.dirty, s.dirty + r, s.dirty_bytes);
  }
  return 0;
}

void copy_out(const Transfer& t, uint64_t from, const char* data, uint64_t bytes) {
  for (int i = 0; i < t.count && bytes != 0; ++i) {
    const uint64_t length = t.pieces[i].iov_len;
    if (from >= length) {
      from -= length;
      continue;
    }
    const uint64_t n = least(length - from, bytes);
    memcpy(static_cast<char*>(t.pieces[i].iov_base) + from, data, n);
    data += n;
    bytes -= n;
    from = 0;
  }
}

Result read(Layer& l, const Transfer& t) {
  State& s = state(l);
  if (s.dirty_bytes != 0 && drain(l) < 0) s.clean_bytes = 0;
  if (t.bytes > s.most) return read_below(l, t);
  if (t.offset < s.clean_at || t.offset + t.bytes > s.clean_at + s.clean_bytes) {
    const Result size = known_size(l);
    if (size < 0) return size;
    if (t.offset >= static_cast<uint64_t>(size)) return 0;
    const Result got = read_below(l, s.clean, s.most, t.offset);
    if (got < 0) return got;
    s.clean_at = t.offset;
    s.clean_bytes = static_cast<uint64_t>(got);
  }
  const uint64_t have = s.clean_at + s.clean_bytes - t.offset;
  const uint64_t n = least(have, t.bytes);
  copy_out(t, 0, s.clean + (t.offset - s.clean_at), n);
  return static_cast<Result>(n);
}

Result write(Layer& l, const Transfer& t) {
  State& s = state(l);
  s.clean_bytes = 0;
  if (const Result size = known_size(l); size < 0) return size;
  const bool follows = s.dirty_bytes != 0 && t.offset == s.dirty_at + s.dirty_bytes &&
                       s.dirty_bytes + t.bytes <= s.most;
  if (!follows) {
    if (const Result r = drain(l); r < 0) return r;
    if (t.bytes > s.most) {
      const Result r = write_below(l, t);
      if (r > 0 && t.offset + static_cast<uint64_t>(r) > s.size)
        s.size = t.offset + static_cast<uint64_t>(r);
      return r;
    }
    s.dirty_at = t.offset;
  }
  for (int i = 0; i < t.count; ++i) {
    memcpy(s.dirty + s.dirty_bytes, t.pieces[i].iov_base, t.pieces[i].iov_len);
    s.dirty_bytes += t.pieces[i].iov_len;
  }
  if (t.offset + t.bytes > s.size) s.size = t.offset + t.bytes;
  return static_cast<Result>(t.bytes);
}

Result flush(Layer& l) {
  const Result r = drain(l);
  const Result below = flush_below(l);
  return r < 0 ? r : below;
}

Result truncate(Layer& l, uint64_t bytes) {
  if (const Result r = drain(l); r < 0) return r;
  state(l).clean_bytes = 0;
  state(l).knows_size = false;
  return truncate_below(l, bytes);
}

Result sync(Layer& l, bool data_only) {
  const Result r = drain(l);
  const Result below = sync_below(l, data_only);
  return r < 0 ? r : below;
}

void invalidate(Layer& l) {
  state(l).clean_bytes = 0;
  state(l).knows_size = false;
  invalidate_below(l);
}

}  // namespace

const Kind kHold{
    .name = "hold", .flags = kHolds, .state_bytes = sizeof(State), .statistics_count = 0,
    .create = create, .open = nullptr, .ready = nullptr, .read = read, .write = write,
    .size = known_size, .truncate = truncate, .flush = flush, .sync = sync,
    .invalidate = invalidate, .close = nullptr,
};

}  // namespace weir::layers
