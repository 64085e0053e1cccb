// SPDX-License-Identifier: Apache-2.0
// Blocks of the arena on their way: taken, filled, written by a job, free again. A block that could
// not be written keeps its bytes and is tried once more, by the next write, fsync or close; what
// fails then is lost, and said.
#include <errno.h>

#include "layers/bufa/state.h"
#include "base/futex.h"

namespace weir::layers::bufa {
namespace {

constexpr uint32_t kLooks = 8;  // at full blocks while more of them come

// Writes one range; 0 or a positive errno. What has been written is clean, whatever happens to the
// rest; in a block with a map later, by settle_map(): whoever reads meanwhile lays the map over
// what it read before.
int write_range_of(WriteBlock& b, writeback::Range range, bool appending) {
  Layer& l = *b.layer;
  State& s = state_of(l);
  for (uint32_t at = range.lo; at < range.hi;) {
    if (appending) {
      const Result end = stack::size_below(l);
      if (end < 0) return static_cast<int>(-end);
      writeback::begin_append(s.writer->arena, b.arena_block, static_cast<uint64_t>(end));
    }
    const iovec piece{b.data + at, range.hi - at};
    const int twin =
        appending ? -1 : descriptor_for(s, piece.iov_base, piece.iov_len, b.offset + at);
    const Result moved =
        stack::write_below(l, Transfer{&piece, 1, piece.iov_len, b.offset + at, twin});
    count_shared(l, kSystemWrites, 1);
    if (moved == -EINTR || moved == -EAGAIN) continue;
    if (moved <= 0) return moved == 0 ? EIO : static_cast<int>(-moved);
    if (!b.mapped)
      writeback::mark_clean(s.writer->arena, b.arena_block, at, at + static_cast<uint32_t>(moved));
    at += static_cast<uint32_t>(moved);
    b.done = at;
  }
  return 0;
}

void write_out(WriteBlock& b, bool appending) {
  b.error = 0;
  b.done = 0;
  writeback::Range range{0, 0};
  while (b.error == 0 && next_range(state_of(*b.layer), b, range.hi, &range))
    b.error = write_range_of(b, range, appending);
}

// The job of a block with a map is over.
void settle_map(State& s, WriteBlock& b) {
  if (!b.mapped) return;
  writeback::mark_clean(s.writer->arena, b.arena_block, 0, b.error == 0 ? UINT32_MAX : b.done);
  b.mapped = writeback::is_mapped(s.writer->arena, b.arena_block);
  b.gap = 0;
}

void write_job(pool::Job* job) {
  auto& b = *reinterpret_cast<WriteBlock*>(job);
  State& s = state_of(*b.layer);
  Writer& w = *s.writer;
  const bool appending = w.appending;
  if (appending) {
    for (uint32_t turn = base::load(&w.turn); turn != b.ticket; turn = base::load(&w.turn))
      base::futex_wait(&w.turn, turn);
    if ((b.error = w.append_error) == 0) write_out(b, true);
    w.append_error = b.error;
    base::store(&w.turn, b.ticket + 1);
    base::futex_wake(&w.turn, INT32_MAX);
  } else {
    write_out(b, false);
  }
  if (b.error != 0) base::store(&s.trouble, 1u);
}

void prepare(State& s, WriteBlock& b) {
  if (s.current == &b) s.current = nullptr;
  b.state = BlockState::kWriting;
  raise_end(s, s.writer->appending ? kUnknownEnd
                                   : b.offset + (b.mapped ? b.end : b.ranges[b.count - 1].hi));
  b.failed = false;
  b.full = false;
  b.ticket = s.writer->appending ? s.writer->next_ticket++ : 0;
  b.job.run = write_job;
}

void release(State& s, WriteBlock& b) {
  writeback::give_block(s.writer->arena, b.arena_block);
  b.state = BlockState::kFree;
  b.failed = false;
  b.count = 0;
  --s.writer->used;
  if (s.current == &b) s.current = nullptr;
}

void reap_one(State& s, WriteBlock& b) {
  settle_map(s, b);
  if (b.error == 0) return release(s, b);
  b.state = BlockState::kDirty;
  b.failed = true;
  b.count = b.mapped ? 1 : writeback::dirty(s.writer->arena, b.arena_block, b.ranges);
  if (b.count == 0) release(s, b);
}

WriteBlock* oldest(Writer& w, BlockState state, bool failed) {
  WriteBlock* found = nullptr;
  for (uint32_t i = 0; i < w.high; ++i) {
    WriteBlock& b = w.blocks[i];
    if (b.state == state && b.failed == failed && (found == nullptr || b.stamp < found->stamp))
      found = &b;
  }
  return found;
}

WriteBlock* take(Layer& l, uint64_t base) {
  State& s = state_of(l);
  Writer& w = *s.writer;
  int block = -1;
  while (w.used >= s.buffers || (block = writeback::take_block(w.arena)) < 0) {
    if (!make_room(l)) return nullptr;
  }
  uint32_t i = 0;
  while (w.blocks[i].state != BlockState::kFree) ++i;
  if (i >= w.high) w.high = i + 1;
  WriteBlock& b = w.blocks[i];
  b.layer = &l;
  b.arena_block = block;
  b.data = static_cast<char*>(writeback::data(w.arena, block));
  b.offset = base;
  b.count = 0;
  b.age = 0;
  b.error = 0;
  b.failed = false;
  b.full = false;
  b.mapped = false;
  b.stamp = ++w.clock;
  b.state = BlockState::kDirty;
  ++w.used;
  writeback::assign(w.arena, block, w.slot, w.appending ? writeback::kAtEnd : base);
  begin_flush_timer(l);
  return &b;
}

}  // namespace

bool submit(State& s, pool::Job& job) {
  if (!s.inline_jobs && pool::submit(job)) return true;
  const Changing changing;
  job.run(&job);
  return false;
}

void issue(Layer& l, WriteBlock& b) {
  State& s = state_of(l);
  prepare(s, b);
  submit(s, b.job);
}

void issue_full(Layer& l, WriteBlock& b) {
  State& s = state_of(l);
  Writer& w = *s.writer;
  if (w.appending || s.buffers < 8) return issue(l, b);
  b.full = true;
  ++w.filled;
  if (s.current == &b) s.current = nullptr;
  if (w.used * 8 >= s.buffers * 7) return issue_all_full(l);
  look_soon();
}

void issue_all_full(Layer& l) {
  Writer& w = *state_of(l).writer;
  for (uint32_t i = 0; i < w.high; ++i) {
    WriteBlock& b = w.blocks[i];
    if (b.state == BlockState::kDirty && b.full && !b.failed) issue(l, b);
  }
}

// While a dump is under way, writing it out would take the cores from it.
bool issue_after_filling(Layer& l) {
  Writer& w = *state_of(l).writer;
  const bool more = w.filled != w.filled_seen && ++w.looks < kLooks;
  w.filled_seen = w.filled;
  if (more) return false;
  w.looks = 0;
  issue_all_full(l);
  return true;
}

void reap(Layer& l) {
  State& s = state_of(l);
  if (s.writer == nullptr || s.writer->used == 0) return;
  for (uint32_t i = 0; i < s.writer->high; ++i) {
    WriteBlock& b = s.writer->blocks[i];
    if (b.state == BlockState::kWriting && pool::idle(b.job)) reap_one(s, b);
  }
}

bool make_room(Layer& l) {
  State& s = state_of(l);
  Writer& w = *s.writer;
  if (w.used == 0) return false;
  const uint32_t before = w.used;
  reap(l);
  if (w.used < before) return true;
  // Those that fill slowly go out by halves, so that several are under way.
  uint32_t half = 0;
  for (uint32_t i = 0; i < w.high; ++i)
    half += w.blocks[i].state == BlockState::kDirty && !w.blocks[i].failed;
  for (half = (half + 1) / 2; half > 0; --half) {
    WriteBlock* b = oldest(w, BlockState::kDirty, false);
    if (b == nullptr) break;
    issue(l, *b);
  }
  if (WriteBlock* b = oldest(w, BlockState::kWriting, false); b != nullptr) {
    wait_for(l, b->job);
    reap(l);
  } else {
    retry_failed(l);
  }
  return true;
}

void retry_failed(Layer& l) {
  State& s = state_of(l);
  if (s.writer == nullptr) return;
  Writer& w = *s.writer;
  base::store(&s.trouble, 0u);
  if (w.appending) {
    // Those that wait behind a failed one fail as well, and come after it.
    for (uint32_t i = 0; i < w.high; ++i) {
      if (w.blocks[i].state == BlockState::kWriting) wait_for(l, w.blocks[i].job);
    }
    base::store(&s.trouble, 0u);
  }
  reap(l);
  w.append_error = 0;
  while (WriteBlock* b = oldest(w, BlockState::kDirty, true)) {
    count(l, kRetries);
    write_out(*b, w.appending);
    settle_map(s, *b);
    if (b->error != 0) {
      uint64_t lost = 0;
      writeback::Range left{0, 0};
      while (writeback::next_dirty(w.arena, b->arena_block, left.hi, &left))
        lost += left.hi - left.lo;
      writeback::mark_clean(w.arena, b->arena_block);
      stack::defer_error(l, b->error, lost);
    }
    release(s, *b);
  }
}

WriteBlock* block_for(Layer& l, uint64_t offset) {
  State& s = state_of(l);
  Writer& w = *s.writer;
  const uint64_t base = round_down(offset, s.block_bytes);
  for (uint32_t i = 0; i < w.high; ++i) {
    WriteBlock& b = w.blocks[i];
    if (b.state == BlockState::kFree || b.offset != base) continue;
    if (b.state == BlockState::kWriting) {
      if (w.appending) continue;
      wait_for(l, b.job);
      reap_one(s, b);
      if (b.state == BlockState::kFree) continue;
    }
    if (w.appending && (b.failed || b.ranges[b.count - 1].hi != offset - base)) {
      if (!b.failed) issue(l, b);
      continue;
    }
    b.stamp = w.appending ? b.stamp : ++w.clock;
    return &b;
  }
  return take(l, base);
}

}  // namespace weir::layers::bufa
