// SPDX-License-Identifier: Apache-2.0
// Writing: accepted into blocks that outlive the process, written when they are full, when room is
// needed, after a second, at fsync and close. A block's dirty ranges are what the program wrote and
// nothing else.
#include <fcntl.h>
#include <string.h>

#include "layers/writeback/client.h"
#include "layers/bufa/cursor.h"
#include "layers/bufa/shared.h"
#include "layers/bufa/state.h"
#include "layers/registration/register_file.h"
#include "base/syscall.h"

namespace weir::layers::bufa {
namespace {

constexpr uint64_t kRetryNs = 1'000'000'000;

// A request that is not buffered, after what is dirty where it goes.
Result write_through(Layer& l, const Transfer& t) {
  State& s = state_of(l);
  const bool append = (l.file->flags & O_APPEND) != 0;
  if (append) write_all(l);
  else write_range(l, t.offset, t.bytes);
  raise_end(s, append ? kUnknownEnd : t.offset + t.bytes);
  const Result result = pass_write(l, t, !append && !any_dirty(s));
  if (result <= 0) return result;
  if (t.offset + static_cast<uint64_t>(result) > s.known_size)
    s.known_size = t.offset + static_cast<uint64_t>(result);
  if (s.reader == nullptr) return result;
  uint64_t done = 0;
  for (int i = 0; i < t.count && done < static_cast<uint64_t>(result); ++i) {
    uint64_t n = t.pieces[i].iov_len;
    if (n > static_cast<uint64_t>(result) - done) n = static_cast<uint64_t>(result) - done;
    if (n != 0) patch(l, static_cast<const char*>(t.pieces[i].iov_base), n, t.offset + done);
    done += n;
  }
  return result;
}

// Bytes [lo, hi) of the block are the program's now. False: no memory for so many ranges.
bool note(State& s, WriteBlock& b, uint32_t lo, uint32_t hi) {
  if (!writeback::mark_dirty(s.writer->arena, b.arena_block, lo, hi)) return false;
  const uint32_t before = b.mapped ? b.end : b.count != 0 ? b.ranges[b.count - 1].hi : 0;
  if (!b.mapped && writeback::is_mapped(s.writer->arena, b.arena_block)) {
    b.mapped = true;
    b.gap = b.done = b.count = 0;
  }
  if (b.count != 0 && b.ranges[b.count - 1].hi == lo) {
    b.ranges[b.count - 1].hi = hi;
  } else if (b.mapped) {
    b.ranges[0] = {lo, hi};
    b.count = 1;
  } else {
    b.count = writeback::dirty(s.writer->arena, b.arena_block, b.ranges);
  }
  b.end = hi > before ? hi : before;
  return true;
}

// Whether all of the block is the program's.
bool is_full(State& s, WriteBlock& b) {
  if (!b.mapped) return b.count == 1 && b.ranges[0].lo == 0 && b.ranges[0].hi == s.block_bytes;
  b.gap = writeback::first_clean(s.writer->arena, b.arena_block, b.gap);
  return b.gap == s.block_bytes;
}

// Accepts a piece. Bytes accepted: all of them but for a lack of blocks.
uint64_t accept(Layer& l, const char* from, uint64_t bytes, uint64_t offset) {
  State& s = state_of(l);
  uint64_t done = 0;
  while (done < bytes) {
    WriteBlock* b = block_for(l, offset + done);
    if (b == nullptr) return done;
    const auto lo = static_cast<uint32_t>(offset + done - b->offset);
    const auto hi = static_cast<uint32_t>(bytes - done < s.block_bytes - lo ? lo + (bytes - done)
                                                                            : s.block_bytes);
    const bool goes_on = b->count != 0 && b->ranges[b->count - 1].hi == lo;
    memcpy(b->data + lo, from + done, hi - lo);
    if (!note(s, *b, lo, hi)) {
      issue(l, *b);
      wait_for(l, b->job);
      reap(l);
      if (s.trouble != 0) retry_failed(l);
      continue;
    }
    if (goes_on) count(l, kWritesMerged);
    done += hi - lo;
    if (is_full(s, *b) || (hi == s.block_bytes && (goes_on || s.writer->appending)))
      issue_full(l, *b);
    else s.current = b->mapped ? nullptr : b;
  }
  if (s.reader != nullptr) patch(l, from, bytes, offset);
  if (offset + bytes > s.known_size) s.known_size = offset + bytes;
  return bytes;
}

// Whether the request goes into blocks. Large ones do when the system is slow and buffers are free,
// so that a dump costs a copy.
bool worth_buffering(Layer& l, const Transfer& t) {
  State& s = state_of(l);
  // One slow request may be the scheduler's doing, and whoever buffers learns nothing more of the
  // system below.
  if (t.bytes <= s.write_limit)
    return t.bytes <= kQuickRequest || s.always || s.writer != nullptr || s.quick <= -2;
  const bool fits =
      s.writer != nullptr && t.bytes <= uint64_t{s.buffers - s.writer->used} * s.block_bytes;
  if (s.quick < 0 && fits) return true;
  of_no_use(l, t.bytes >= s.block_bytes / 2 ? Reason::kLargeRequests : Reason::kCached);
  return false;
}

// Whether accepted bytes would outlive the process. What is dirty is written first when a daemon
// has to be found again.
bool is_protected(Layer& l) {
  State& s = state_of(l);
  if (WEIR_LIKELY(writeback::protected_now())) return true;
  write_all(l);
  // Looking for one takes time, which a file that is written plainly does not have to spend with
  // each write.
  const uint64_t now = now_ns();
  if (now < s.retry_ns) return false;
  s.retry_ns = now + kRetryNs;
  if (writeback::ensure() && writeback::held(s.writer->arena, s.writer->slot)) return true;
  if (!s.noted) stack::note_bypass(l, Reason::kNoDaemon);
  s.noted = true;
  return false;
}

// Whether the file has a writer now: one is made for a file that has shown that it pays.
bool has_writer(Layer& l, const Transfer& t) {
  State& s = state_of(l);
  if (s.no_writer || !worth_buffering(l, t)) return false;
  if (s.writer != nullptr) return true;
  if ((!s.always && s.spent_ns < kWorthWritingNs) || !stack::begin_to_hold(l)) return false;
  const Changing changing;
  if (begin_writer(l)) return true;
  s.no_writer = true;
  stack::note_bypass(l, Reason::kNoDaemon);
  return false;
}

// Into blocks, as far as there are any.
Result buffer(Layer& l, const Transfer& t) {
  State& s = state_of(l);
  // Without a thread, as in a signal handler, nobody would write what waits here.
  if (!is_protected(l) || (!s.flush_timer.listed && !pool::ready())) return write_through(l, t);
  const bool append = (l.file->flags & O_APPEND) != 0;
  if (s.writer->appending != append) {
    write_all(l);
    s.writer->appending = append;
  }
  s.useless = 0;
  Cursor from(t);
  uint64_t done = 0;
  while (done < t.bytes) {
    const uint64_t room = from.room();
    const uint64_t taken = accept(l, from.at(), room, t.offset + done);
    done += taken;
    if (taken < room) {
      if (done != 0) return static_cast<Result>(done);
      return write_through(l, t);
    }
    from.advance(taken, done == t.bytes);
  }
  return static_cast<Result>(done);
}

Result write_slowly(Layer& l, const Transfer& t) {
  State& s = state_of(l);
  if (s.writer == nullptr && !has_writer(l, t)) return write_through(l, t);
  const Changing changing;
  reap(l);
  if (s.trouble != 0) retry_failed(l);
  return has_writer(l, t) ? buffer(l, t) : write_through(l, t);
}

}  // namespace

Result write(Layer& l, const Transfer& t) {
  State& s = state_of(l);
  WriteBlock* b = s.current;
  if (WEIR_LIKELY(b != nullptr && t.count == 1 && t.bytes <= s.write_limit &&
                  s.reader == nullptr) &&
      base::load_relaxed(&s.trouble) == 0) {
    const uint64_t lo = t.offset - b->offset;
    writeback::Range& last = b->ranges[b->count - 1];
    // What fills the block has more to do.
    if (WEIR_LIKELY(lo == last.hi && t.bytes < s.block_bytes - lo && writeback::protected_now())) {
      const auto hi = static_cast<uint32_t>(lo + t.bytes);
      memcpy(b->data + lo, t.pieces->iov_base, t.bytes);
      if (WEIR_LIKELY(writeback::mark_dirty(s.writer->arena, b->arena_block,
                                            static_cast<uint32_t>(lo), hi))) {
        last.hi = hi;
        if (t.offset + t.bytes > s.known_size) s.known_size = t.offset + t.bytes;
        count(l, kWritesMerged);
        return static_cast<Result>(t.bytes);
      }
    }
  }
  return write_slowly(l, t);
}

bool begin_writer(Layer& l) {
  State& s = state_of(l);
  writeback::Arena* arena = arena_for(s.block_bytes);
  if (arena == nullptr) return false;
  const stack::File& f = *l.file;
  const int slot = register_file(arena, l, (f.flags & O_APPEND) != 0);
  if (slot < 0) return false;
  const long memory =
      writeback::held(arena, slot)
          ? base::map(sizeof(Writer), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS)
          : -1;
  if (base::failed(memory)) {
    writeback::unregister_file(arena, slot);
    return false;
  }
  s.writer = reinterpret_cast<Writer*>(memory);
  s.writer->arena = arena;
  s.writer->slot = slot;
  s.writer->appending = (f.flags & O_APPEND) != 0;
  return true;
}

void end_writer(Layer& l) {
  State& s = state_of(l);
  if (s.writer == nullptr) return;
  const Changing changing;
  write_all(l);
  writeback::unregister_file(s.writer->arena, s.writer->slot);
  base::unmap(s.writer, sizeof(Writer));
  s.writer = nullptr;
}

void write_all(Layer& l) { write_range(l, 0, ~uint64_t{0}); }

void write_range(Layer& l, uint64_t offset, uint64_t bytes) {
  State& s = state_of(l);
  if (!any_dirty(s)) return;
  const Changing changing;
  Writer& w = *s.writer;
  const auto touched = [&](const WriteBlock& b) {
    return b.state != BlockState::kFree &&
           (b.offset >= offset ? b.offset - offset < bytes : offset - b.offset < s.block_bytes);
  };
  for (uint32_t i = 0; i < w.high; ++i) {
    WriteBlock& b = w.blocks[i];
    if (touched(b) && b.state == BlockState::kDirty && !b.failed) issue(l, b);
  }
  for (uint32_t i = 0; i < w.high; ++i) {
    WriteBlock& b = w.blocks[i];
    if (touched(b) && b.state == BlockState::kWriting) wait_for(l, b.job);
  }
  reap(l);
  for (uint32_t i = 0; i < w.high; ++i) {
    if (w.blocks[i].failed && w.blocks[i].state == BlockState::kDirty) return retry_failed(l);
  }
}

Result flush(Layer& l) {
  write_all(l);
  return stack::flush_below(l);
}

bool any_dirty(const State& s) { return s.writer != nullptr && s.writer->used != 0; }

uint64_t dirty_end(const State& s) {
  if (!any_dirty(s)) return 0;
  uint64_t end = 0;
  for (uint32_t i = 0; i < s.writer->high; ++i) {
    const WriteBlock& b = s.writer->blocks[i];
    if (b.state == BlockState::kFree || b.count == 0) continue;
    const uint64_t ends = b.offset + (b.mapped ? b.end : b.ranges[b.count - 1].hi);
    if (ends > end) end = ends;
  }
  return end;
}

bool next_range(const State& s, const WriteBlock& b, uint32_t from, writeback::Range* to) {
  if (b.mapped) return writeback::next_dirty(s.writer->arena, b.arena_block, from, to);
  for (uint32_t i = 0; i < b.count; ++i) {
    if (b.ranges[i].hi <= from) continue;
    *to = {b.ranges[i].lo > from ? b.ranges[i].lo : from, b.ranges[i].hi};
    return true;
  }
  return false;
}

WriteBlock* first_dirty(const State& s, uint64_t offset, uint64_t bytes) {
  if (!any_dirty(s)) return nullptr;
  WriteBlock* found = nullptr;
  for (uint32_t i = 0; i < s.writer->high; ++i) {
    WriteBlock& b = s.writer->blocks[i];
    if (b.state == BlockState::kFree || b.offset >= offset + bytes ||
        b.offset + s.block_bytes <= offset)
      continue;
    if (found == nullptr || b.offset < found->offset) found = &b;
  }
  return found;
}

void overlay(const State& s, char* to, uint64_t bytes, uint64_t offset) {
  for (uint32_t i = 0; i < s.writer->high; ++i) {
    const WriteBlock& b = s.writer->blocks[i];
    if (b.state == BlockState::kFree || b.offset >= offset + bytes ||
        b.offset + s.block_bytes <= offset)
      continue;
    writeback::Range range{0, offset > b.offset ? static_cast<uint32_t>(offset - b.offset) : 0};
    while (next_range(s, b, range.hi, &range) && b.offset + range.lo < offset + bytes) {
      const uint64_t from = b.offset + range.lo, end = b.offset + range.hi < offset + bytes
                                                           ? b.offset + range.hi
                                                           : offset + bytes;
      memcpy(to + (from - offset), b.data + range.lo, end - from);
    }
  }
}

}  // namespace weir::layers::bufa
