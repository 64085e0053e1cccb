// SPDX-License-Identifier: Apache-2.0
// Dirty bytes of a slot on their way to the file. One rank writes a slot at a time (Slot::writer),
// and holds the slot's lock only before and after its requests: meanwhile others read the block and
// write into it. What they write stays dirty, and comes to the file with the next writing, so never
// before the bytes that it replaces.
#include <errno.h>

#include "layers/cache/slots.h"

namespace weir::cache {
namespace {

// requests by which more than half as many as the program's were made, for each of
// Policy::wasted_blocks
constexpr uint32_t kScattered = 32;
constexpr uint32_t kMany = 4;  // writes that no chance brings together in one block
constexpr uint32_t kInVain = 2;  // attempts at a slot that cannot be had nor taken away
constexpr uint32_t kRuns = 32;  // written between two holdings of the slot's lock

writeback::Range range_of(uint64_t packed) {
  return {static_cast<uint32_t>(packed), static_cast<uint32_t>(packed >> 32)};
}
uint64_t packed(writeback::Range range) { return range.lo | uint64_t{range.hi} << 32; }

// Runs of dirty bytes that lie one after another in the file, from `from` on; their number, at most
// kRuns.
uint32_t collect(const Cache& c, const Slot& s, uint32_t from, writeback::Range* to) {
  uint32_t n = 0;
  for (uint32_t piece = from / c.piece_bytes; piece < c.pieces; ++piece) {
    if ((s.touched >> piece & 1) == 0) continue;
    const uint32_t base = piece * c.piece_bytes;
    writeback::Range range{0, from > base ? from - base : 0};
    while (writeback::next_dirty(c.arena, c.arena_block(s, piece), range.hi, &range)) {
      if (n > 0 && to[n - 1].hi == base + range.lo) {
        to[n - 1].hi = base + range.hi;
        continue;
      }
      if (n == kRuns) return n;
      to[n++] = {base + range.lo, base + range.hi};
    }
  }
  return n;
}

void clean(Cache& c, Slot& s, uint32_t lo, uint32_t hi) {
  const uint32_t size = c.piece_bytes;
  for (uint32_t piece = lo / size; piece < c.pieces && piece * size < hi; ++piece) {
    const uint32_t base = piece * c.piece_bytes;
    const int block = c.arena_block(s, piece);
    writeback::lock_block(c.arena, block);
    const uint32_t until = hi - base < c.piece_bytes ? hi - base : c.piece_bytes;
    writeback::mark_clean(c.arena, block, lo > base ? lo - base : 0, until);
    writeback::unlock_block(c.arena, block);
  }
}

// The same without what was accepted since the writing began.
void clean_unchanged(Cache& c, Slot& s, uint32_t lo, uint32_t hi) {
  while (lo < hi) {
    writeback::Range again{hi, hi};
    for (uint32_t i = 0; i < s.again_count; ++i) {
      const writeback::Range r = range_of(s.again[i]);
      if (r.hi > lo && r.lo < again.lo) again = r;
    }
    if (again.lo > lo) clean(c, s, lo, again.lo);
    lo = again.hi;
  }
}

class Writing {
 public:
  Writing(Opening& o, Slot& s, bool last)
      : o_(o), c_(*o.cache), s_(s), last_(last), offset_(block_of(s.tag) * o.cache->block_bytes) {}

  // All that is dirty now, by rising offsets. The caller has both locks; false: it has none of them
  // any more, the slot was taken away.
  bool write() {
    uint32_t from = 0;
    writeback::Range runs[kRuns];
    uint32_t done[kRuns];
    while (const uint32_t n = from < c_.block_bytes ? collect(c_, s_, from, runs) : 0) {
      s_.again_count = 0;
      base::store(&s_.writing, 1u);
      node::release(s_.lock);
      for (uint32_t i = 0; i < n; ++i) done[i] = write_run(runs[i]);
      if (!lock_again()) return false;
      for (uint32_t i = 0; i < n; ++i) {
        clean_unchanged(c_, s_, runs[i].lo, runs[i].lo + done[i]);
        if (last_) clean_unchanged(c_, s_, runs[i].lo + done[i], runs[i].hi);
      }
      base::store(&s_.writing, 0u);
      from = runs[n - 1].hi;
    }
    return true;
  }
  int64_t error() const { return error_; }
  uint64_t lost() const { return lost_; }
  uint32_t runs() const { return runs_; }
  uint32_t stuck_owner() const { return stuck_; }

 private:
  // Bytes that are in the file.
  uint32_t write_run(writeback::Range run) {
    const uint32_t all = run.hi - run.lo;
    uint32_t done = 0;
    iovec pieces[kPieces];
    count(o_, all == c_.block_bytes ? kWholeWrites : kPartWrites);
    ++runs_;
    while (done < all) {
      // who took the slot away writes these bytes, or has
      if (WEIR_UNLIKELY(!node::is_mine(s_.writer))) return done;
      const int used = pieces_of(c_, s_, run.lo + done, all - done, pieces);
      const uint64_t at = offset_ + run.lo + done;
      const int64_t n = o_.below.write(o_.below.context, pieces, used, all - done, at);
      if (n == -EINTR || n == -EAGAIN) continue;
      if (n <= 0) {
        error_ = n < 0 ? n : -EIO;
        lost_ += all - done;
        break;
      }
      base::fetch_add(&entry(o_).written, uint64_t{1});
      base::fetch_add(&s_.requests, 1u);
      done += static_cast<uint32_t>(n);
    }
    return done;
  }

  // A stopped owner of the slot's lock keeps nobody from noting what is in the file; the slot is
  // nobody's afterwards.
  bool lock_again() {
    uint32_t owner = 0;
    while (take_lock(o_, s_) == node::Taken::kNot && (owner = node::revoke(s_.lock)) == 0) {}
    if (WEIR_UNLIKELY(owner != 0)) {
      stuck_ = owner;
      note_revoked(s_, owner);
      base::store(&s_.leaving, 1u);
    }
    if (WEIR_LIKELY(node::is_mine(s_.writer))) return true;
    out_of(c_, s_);
    node::release(s_.lock);
    node::release(s_.writer);
    return false;
  }

  Opening& o_;
  Cache& c_;
  Slot& s_;
  const bool last_;
  const uint64_t offset_;
  int64_t error_ = 0;
  uint32_t runs_ = 0, stuck_ = 0;
  uint64_t lost_ = 0;
};

// The slot after its dirty bytes were written: of use to readers, or free.
void settle(Opening& o, Slot& s, bool was_complete) {
  Cache& c = *o.cache;
  count_pieces(c, s);
  const bool keep = o.policy.keeps_reads && !o.policy.several_nodes;
  if (keep && was_complete && s.state == kPartial) {
    s.valid = c.block_bytes;
    base::store(&s.state, uint32_t{kWhole});
  }
  if (s.touched == 0 && !(keep && s.state == kWhole)) make_free(s);
}

bool may_write(const Opening& o, const Slot& s) {
  return s.tag != 0 && file_of(s.tag) == o.file && o.below.writes;
}

// The caller has both locks of a slot whose former owners (noted in it) live and do not go on, or
// had them from one that died while it did this. What was accepted goes to the file, the block
// leaves the slot, and the slot waits until they are known to be out of it. Neither lock is held
// afterwards. False: as if nothing had been done.
bool evict(Opening& o, Slot& s, uint32_t owner, uint32_t writer) {
  Cache& c = *o.cache;
  base::store(&s.leaving, 1u);
  base::store(&s.writing, 0u);
  count_pieces(c, s);
  const uint64_t tag = s.tag;
  if (s.touched != 0 && may_write(o, s)) {
    Writing writing(o, s, false);
    if (!writing.write()) return false;
    count_pieces(c, s);
  }
  const bool done = s.touched == 0;
  if (done) {
    base::store(&s.revoked_tag, tag);
    base::store(&s.revoked, 1u);
    base::fetch_add(&c.directory->revoked, 1u);
    make_free(s);
  }
  base::store(&s.leaving, 0u);
  const bool owner_back = !done && owner != 0 && forget_revoked(s, owner);
  const bool writer_back = !done && writer != 0 && forget_revoked(s, writer);
  if (writer_back) base::store(&s.writing, 1u);
  if (writer_back) node::give_back(s.writer, writer);
  if (owner_back) node::give_back(s.lock, owner);
  else node::release(s.lock);
  if (!writer_back) node::release(s.writer);
  return done;
}

// Whether gathering makes fewer requests of the writes accepted: of pieces with gaps between them
// it does so now and then, by chance, so that two neighbours in a block decide nothing. A whole
// block of many writes does: ranks complete each other's blocks.
void bypass_scattered(Opening& o, uint32_t accepted, uint32_t runs, bool complete) {
  FileEntry& e = entry(o);
  if (o.policy.wasted_blocks == 0 || runs == 0) return;
  if (complete && accepted >= kMany) {
    base::store(&e.scattered, 0u);
    return;
  }
  const uint64_t cost = uint64_t{runs} * 2;
  uint32_t before = base::load_relaxed(&e.scattered), after;
  do {
    const uint64_t all = before + cost;
    after = static_cast<uint32_t>(all > accepted ? all - accepted : 0);
  } while (!base::compare_exchange(&e.scattered, &before, after));
  if (after < kScattered * o.policy.wasted_blocks) return;
  __atomic_fetch_or(&e.bypassed, uint32_t{kWritesBypassed}, __ATOMIC_RELAXED);
}

int64_t finish(Opening& o, Slot& s, const Writing& writing, bool last, bool complete) {
  const int64_t error = writing.error();
  if (error == 0) {
    s.failures = 0;
  } else {
    s.failures += 1;
    if (last) {
      FileEntry& e = entry(o);
      e.error = static_cast<uint32_t>(-error);
      o.errors_seen = base::fetch_add(&e.errors, uint64_t{1}) + 1;
      const int number = static_cast<int>(-error);
      if (o.below.lost != nullptr) o.below.lost(o.below.context, number, writing.lost());
    }
  }
  settle(o, s, complete && error == 0);
  return error;
}

}  // namespace

node::Taken take_lock(Opening& o, Slot& s) {
  const node::Taken taken = node::take(s.lock);
  if (WEIR_UNLIKELY(taken == node::Taken::kFromDead)) repair(*o.cache, s);
  return taken;
}

bool take_writer(Opening& o, Slot& s) {
  if (WEIR_LIKELY(node::try_acquire(s.writer))) return true;
  count(o, kWriteWaits);
  if (node::take(s.writer, &s.requests) != node::Taken::kNot) return true;
  o.held_up = true;
  count(o, kRevoked);
  take_away(o, s);
  return false;
}

bool take_away(Opening& o, Slot& s) {
  uint32_t writer = 0, owner = 0;
  if (node::take(s.writer, &s.requests) == node::Taken::kNot) {
    writer = node::revoke(s.writer);
    if (writer == 0) return false;
  }
  if (take_lock(o, s) == node::Taken::kNot && (owner = node::revoke(s.lock)) == 0) {
    if (writer != 0) node::give_back(s.writer, writer);
    else node::release(s.writer);
    return false;
  }
  if (s.writing == 0) writer = 0;  // it has not begun, or is done
  if (owner == 0 && writer == 0 && s.leaving == 0) {
    node::release(s.lock);
    node::release(s.writer);
    return false;
  }
  const auto is_noted = [&s](auto rank) { return rank == 0 || note_revoked(s, rank); };
  if (is_noted(owner) && is_noted(writer)) return evict(o, s, owner, writer);
  if (owner != 0) forget_revoked(s, owner);
  if (owner != 0) node::give_back(s.lock, owner);
  else node::release(s.lock);
  if (writer != 0) node::give_back(s.writer, writer);
  else node::release(s.writer);
  return false;
}

void await_leaving(Opening& o, Slot& s) {
  if (!take_writer(o, s)) return;
  if (take_lock(o, s) != node::Taken::kNot) {
    if (s.leaving != 0 && node::is_mine(s.writer)) {
      evict(o, s, 0, 0);
      return;
    }
    node::release(s.lock);
  }
  node::release(s.writer);
}

namespace {

enum class Begun { kYes, kAgain, kBypass, kBusy };
// Both locks of a slot that has the block. kBusy: somebody else writes it, and is not waited for.
Begun begin_writing(Opening& o, Slot& s, uint64_t wanted, bool waits, uint32_t* in_vain) {
  if (!waits && !node::try_acquire(s.writer)) return Begun::kBusy;
  if (waits && !take_writer(o, s)) {
    const bool is_over = base::load(&s.tag) != wanted || ++*in_vain > kInVain;
    return is_over ? Begun::kBypass : Begun::kAgain;
  }
  if (WEIR_UNLIKELY(take_lock(o, s) == node::Taken::kNot)) {
    node::release(s.writer);
    o.held_up = true;
    count(o, kRevoked);
    return take_away(o, s) || ++*in_vain > kInVain ? Begun::kBypass : Begun::kAgain;
  }
  if (WEIR_UNLIKELY(s.leaving != 0)) {  // the rank that took it away has died
    return evict(o, s, 0, 0) || ++*in_vain > kInVain ? Begun::kBypass : Begun::kAgain;
  }
  const bool mine = node::is_mine(s.writer);
  if (WEIR_LIKELY(mine)) base::store(&s.writing, 0u);  // of one that died in it
  if (WEIR_LIKELY(mine && s.tag == wanted && s.state != kLoading && s.revoked == 0)) {
    return Begun::kYes;
  }
  node::release(s.lock);
  node::release(s.writer);
  return mine ? Begun::kBypass : Begun::kAgain;
}

// The same for a slot whose locks are both had.
int64_t write_begun(Opening& o, Slot& s, bool last) {
  const bool complete = all_complete(*o.cache, s);
  const uint32_t accepted = s.accepted;
  s.accepted = 0;
  Writing writing(o, s, last);
  if (!writing.write()) return 0;
  if (WEIR_UNLIKELY(s.leaving != 0)) {
    evict(o, s, writing.stuck_owner(), 0);
    return writing.error();
  }
  bypass_scattered(o, accepted, writing.runs(), complete);
  const int64_t error = finish(o, s, writing, last, complete);
  unlock(*o.cache, s);
  node::release(s.writer);
  return error;
}

}  // namespace

int64_t write_out(Opening& o, Slot& s, uint64_t wanted, bool last, bool waits) {
  uint32_t in_vain = 0;
  Begun begun;
  do begun = begin_writing(o, s, wanted, waits, &in_vain);
  while (begun == Begun::kAgain && waits);
  // else it was taken away, and written; or is written by who has it
  return begun == Begun::kYes ? write_begun(o, s, last) : 0;
}

bool all_complete(const Cache& c, const Slot& s) {
  return s.complete == (c.pieces == 64 ? ~uint64_t{0} : (uint64_t{1} << c.pieces) - 1);
}

void note_again(Slot& s, uint32_t lo, uint32_t hi) {
  for (uint32_t i = 0; i < s.again_count; ++i) {
    const writeback::Range r = range_of(s.again[i]);
    // then what lies between counts as well
    const bool full = s.again_count == kAgain && i + 1 == kAgain;
    if (!full && (lo > r.hi || hi < r.lo)) continue;
    base::store(&s.again[i], packed({lo < r.lo ? lo : r.lo, hi > r.hi ? hi : r.hi}));
    return;
  }
  base::store(&s.again[s.again_count], packed({lo, hi}));
  base::store(&s.again_count, s.again_count + 1);
}

}  // namespace weir::cache
