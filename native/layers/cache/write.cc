// SPDX-License-Identifier: Apache-2.0
// Writing through the cache: bytes are accepted into blocks, and written as blocks.
#include <errno.h>
#include <string.h>

#include "layers/cache/forwarding.h"
#include "layers/cache/slots.h"
#include "layers/writeback/client.h"
#include "base/syscall.h"

namespace weir::cache {
namespace {

constexpr int kTries = 64;
// Attempts to write what is dirty before other bytes of its block go past the cache.
constexpr int kWriteFirst = 3;

// Whether bytes lying dirty here would outlive this process.
bool accepting(Opening& o) {
  if (o.unprotected) return false;
  if (o.registered < 0) {
    const FileEntry& e = entry(o);
    o.registered = writeback::register_file(o.cache->arena, {o.below.descriptor, e.device, e.inode,
                                                             o.below.path, false, o.below.level});
    if (o.registered < 0) return false;
  }
  if (WEIR_LIKELY(writeback::protected_now())) return writeback::held(o.cache->arena, o.registered);
  return writeback::ensure() && writeback::held(o.cache->arena, o.registered);
}

void grow(Opening& o, uint64_t end) {
  FileEntry& e = entry(o);
  raise(&e.extent, end);
  raise(&e.end, end);
}

// Accepts the bytes into a locked slot; how many: fewer when there is no memory to note one more
// dirty range of a piece.
uint32_t put(Opening& o, Slot& s, const char* from, uint32_t lo, uint32_t n) {
  Cache& c = *o.cache;
  const uint64_t begin = block_of(s.tag) * c.block_bytes;
  uint32_t done = 0;
  if (s.state == kWhole && lo > s.valid) fill_zeros(c, s, s.valid, lo);
  while (done < n) {
    const uint32_t piece = (lo + done) / c.piece_bytes, within = (lo + done) % c.piece_bytes;
    const uint32_t part = n - done < c.piece_bytes - within ? n - done : c.piece_bytes - within;
    const int block = c.arena_block(s, piece);
    if (s.writing != 0) note_again(s, lo + done, lo + done + part);
    writeback::lock_block(c.arena, block);
    if ((s.touched >> piece & 1) == 0)
      writeback::assign(c.arena, block, o.registered, begin + piece * c.piece_bytes);
    // Before: who leaves this by a jump, or dies, leaves no dirty bytes that a flush does not see.
    base::store(&s.touched, s.touched | uint64_t{1} << piece);
    memcpy(c.bytes_of(s, piece) + within, from + done, part);
    const bool marked = writeback::mark_dirty(c.arena, block, within, within + part);
    const bool complete = marked && writeback::is_all_dirty(c.arena, block, 0, c.piece_bytes);
    writeback::unlock_block(c.arena, block);
    if (!marked) break;
    if (complete) s.complete |= uint64_t{1} << piece;
    done += part;
    if (s.state == kWhole && lo + done > s.valid) base::store(&s.valid, lo + done);
  }
  return done;
}

// Then it takes more bytes, so that all come to the file in their order.
bool is_dirty(const Slot& s) { return base::load(&s.touched) != 0 || base::load(&s.writing) != 0; }

// After bytes were written beside the cache: what it read of them meanwhile may be older.
void forget_older(Opening& o, uint64_t wanted) {
  bool stuck = false;
  Slot* s = find_locked(o, wanted, &stuck);
  if (stuck) base::store(&entry(o).suspect, 1u);
  if (s == nullptr) return;
  if (s->state == kLoading) {
    base::store(&s->discard, 1u);
  } else if (idle(*s)) {
    make_free(*s);
  } else {
    make_partial(*s);
  }
  unlock(*o.cache, *s);
}

// Straight to the file. Nothing may be dirty of these bytes, or who is killed after it leaves older
// ones to the write-back daemon.
int64_t through(Opening& o, const Memory& from, uint64_t n, uint64_t offset) {
  count(o, kPassedOn);
  iovec pieces[kPieces];
  const int used = from.next(pieces, &n);
  const int64_t done = o.below.write(o.below.context, pieces, used, n, offset);
  if (done <= 0) return done;
  const uint64_t end = offset + static_cast<uint64_t>(done), block_bytes = o.cache->block_bytes;
  base::fetch_add(&entry(o).written, uint64_t{1});
  raise(&entry(o).extent, end);
  for (uint64_t block = offset / block_bytes; block * block_bytes < end; ++block) {
    forget_older(o, tag(o, block));
  }
  return done;
}

// Bytes of a write from `offset` on that one request can take past the cache: of blocks of which
// nothing is dirty, whole ones or, when writes bypass the cache, any. What is being read of them
// may be older.
uint64_t in_one_request(Opening& o, uint64_t bytes, uint64_t offset) {
  Cache& c = *o.cache;
  // write_block() renews what was taken away
  if (WEIR_UNLIKELY(base::load_relaxed(&c.directory->revoked) != 0)) return 0;
  const bool parts = (bypassed(o) & kWritesBypassed) != 0;
  uint64_t run = 0;
  while (run < bytes) {
    const uint64_t n = in_block(c, bytes - run, offset + run);
    if (n < c.block_bytes && !parts) break;
    Slot* const s = find(c, tag(o, (offset + run) / c.block_bytes));
    if (s != nullptr && is_dirty(*s)) break;
    if (s != nullptr) base::store(&s->discard, 1u);
    run += n;
  }
  return run;
}

// Of `run`, what one request can take of that many pieces of memory: whole blocks, where it takes
// no parts of them.
uint64_t in_pieces(const Opening& o, const Memory& from, uint64_t run, uint64_t offset) {
  const uint64_t most = from.within_pieces(run);
  if (most == run || (bypassed(o) & kWritesBypassed) != 0) return most;
  const uint64_t part = (offset + most) % o.cache->block_bytes;
  return most > part ? most - part : 0;
}

// Past the cache. What it has of the block that is dirty goes to the file first.
int64_t write_past(Opening& o, const char* from, uint64_t block, uint32_t lo, uint32_t n) {
  Cache& c = *o.cache;
  const uint64_t wanted = tag(o, block);
  Slot* s = find(c, wanted);
  for (int tries = 0; s != nullptr && is_dirty(*s); ++tries) {
    if (tries == kWriteFirst) {  // a rank that does not go on has it and will write it
      copy_in(c, *s, lo, n, from);
      break;
    }
    const int64_t error = write_out(o, *s, wanted, base::load_relaxed(&s->failures) > 0);
    if (error != 0) return error;
    s = find(c, wanted);
  }
  if (s != nullptr) base::store(&s->discard, 1u);  // what is read of it now may be older
  const iovec piece{const_cast<char*>(from), n};
  return through(o, Memory(&piece), n, block * c.block_bytes + lo);
}

// Writes what is dirty in a slot of this file, so that the slot can be another block's. It may have
// become free, or another rank's to write, meanwhile. busy: another rank is writing it, and what
// else is dirty is better left for others to complete. It is waited for once
// (*waits), where waiting has not been in vain again and again. False: the bytes go past the cache.
bool make_room(Opening& o, Slot& s, bool busy, bool* waits) {
  const uint64_t dirty = base::load(&s.tag);
  if (dirty == 0 || file_of(dirty) != o.file) return true;
  if (forwarded(o) && write_by_forwarder(o, s, dirty)) return true;
  if (busy && !*waits) return false;
  if (busy) *waits = false;
  write_out(o, s, dirty, base::load_relaxed(&s.failures) > 0, busy);
  return true;
}

// The block's slot for a write, locked; null: it has to go past the cache. A slot that somebody is
// loading is waited for.
Slot* slot_for_write(Opening& o, uint64_t wanted) {
  Cache& c = *o.cache;
  Patience patience(o);
  bool flushed = false, waits = true;
  for (int tries = 0; tries < kTries;) {
    bool stuck = false;
    Slot* s = find_locked(o, wanted, &stuck);
    if (stuck) return nullptr;
    if (s != nullptr && s->state != kLoading) return s;
    if (s != nullptr) {
      base::store(&s->discard, 1u);  // what it reads may be older than what is written now
      unlock(c, *s);
      const Waited waited = wait_loaded(o, *s, wanted);
      if (waited == Waited::kTooLong) return nullptr;
      if (waited == Waited::kMine) {
        if (!lock(o, *s)) continue;
        if (s->tag == wanted && s->state == kLoading && s->loader == node::self()) make_free(*s);
        unlock(c, *s);
      }
      ++tries;
      continue;
    }
    const Claimed claimed = claim(o, wanted, false, &s);
    if (claimed == Claimed::kMine) {
      if (!flushed) patience.paid();
      return s;
    }
    ++tries;
    if (claimed == Claimed::kNone) return nullptr;
    if (claimed == Claimed::kThere) continue;
    if (all_complete(c, *s) && forwarded(o) && write_by_forwarder(o, *s, base::load(&s->tag)))
      continue;
    if (patience.others_go_on()) {
      --tries;
      continue;
    }
    flushed = true;
    waits = waits && patience.begun();
    if (!make_room(o, *s, claimed == Claimed::kBusy, &waits)) return nullptr;
  }
  return nullptr;
}

int64_t write_block(Opening& o, const char* from, uint64_t block, uint32_t lo, uint32_t n) {
  Cache& c = *o.cache;
  const uint64_t wanted = tag(o, block);
  if (WEIR_UNLIKELY(base::load_relaxed(&c.directory->revoked) != 0))
    renew_revoked(c, wanted, from, lo, n);
  Slot* s = find(c, wanted);
  const bool past = n == c.block_bytes || (bypassed(o) & kWritesBypassed) != 0;
  if (!accepting(o) || (past && (s == nullptr || !is_dirty(*s))))
    return write_past(o, from, block, lo, n);
  s = slot_for_write(o, wanted);
  if (s == nullptr) return write_past(o, from, block, lo, n);
  const uint32_t done = put(o, *s, from, lo, n);
  s->accepted += 1;
  count(o, kAccepted);
  base::fetch_add(&entry(o).progress, uint64_t{1});
  grow(o, block * c.block_bytes + lo + done);
  const bool failed = s->failures > 0, write_now = all_complete(c, *s) || done < n;
  if (!unlock(c, *s)) return 0;  // once more
  if (write_now && done == n && !failed && forwarded(o)) hand_over(o, *s);
  else if (write_now) write_out(o, *s, wanted, failed);
  return done;
}

}  // namespace

int64_t write(Opening& o, const iovec* pieces, int count, uint64_t bytes, uint64_t offset) {
  const Inside in;
  if (in.nested()) {
    const int64_t done = o.below.write(o.below.context, pieces, count, bytes, offset);
    base::store(&entry(o).suspect, 1u);
    return done;
  }
  take_lost(o);
  Cache& c = *o.cache;
  Memory at(pieces);
  uint64_t done = 0;
  while (done < bytes) {
    const uint64_t begin = offset + done;
    const auto n = static_cast<uint32_t>(at.together(in_block(c, bytes - done, begin)));
    uint64_t run = n < bytes - done ? in_one_request(o, bytes - done, begin) : 0;
    if (run > n) run = in_pieces(o, at, run, begin);
    const auto lo = static_cast<uint32_t>(begin % c.block_bytes);
    const int64_t put = run > n ? through(o, at, run, begin)
                                : write_block(o, at.begin(), begin / c.block_bytes, lo, n);
    if (put < 0) return done > 0 ? static_cast<int64_t>(done) : put;
    done += static_cast<uint64_t>(put);
    if (done < bytes) at.advance(static_cast<uint64_t>(put));
  }
  return static_cast<int64_t>(done);
}

namespace {

bool of_file(const Opening& o, const Slot& s) {
  const uint64_t tag = base::load(&s.tag);
  return tag != 0 && file_of(tag) == o.file;
}

// Whether the file's bytes [0, bytes) of its last block are dirty without a gap: whatever else
// comes makes the file longer.
bool without_gap(Cache& c, Slot& s, uint32_t bytes) {
  for (uint32_t piece = 0, at = 0; at < bytes; ++piece, at += c.piece_bytes) {
    const uint32_t end = bytes - at < c.piece_bytes ? bytes - at : c.piece_bytes;
    if ((s.touched >> piece & 1) == 0) return false;
    if (!writeback::is_all_dirty(c.arena, c.arena_block(s, piece), 0, end)) return false;
  }
  return true;
}

bool has_gap(Opening& o, Slot& s, uint64_t extent) {
  Cache& c = *o.cache;
  if (!of_file(o, s) || base::load_relaxed(&s.touched) == 0 || all_complete(c, s)) return false;
  const uint64_t begin = block_of(s.tag) * c.block_bytes;
  if (extent >= begin + c.block_bytes) return true;
  if (!lock(o, s)) return false;
  const bool gap = of_file(o, s) && s.touched != 0 && extent > begin &&
                   !without_gap(c, s, static_cast<uint32_t>(extent - begin));
  return unlock(c, s) && gap;
}

bool any_incomplete(Opening& o) {
  const uint64_t extent = base::load(&entry(o).extent);
  for (uint32_t i = 0; i < o.cache->slots; ++i) {
    if (has_gap(o, o.cache->slot(i), extent)) return true;
  }
  return false;
}

// Everything dirty of the file, but for what others write just now unless `waits`. 0 or the first
// error.
int64_t write_dirty(Opening& o, bool waits) {
  int64_t first = 0;
  for (uint32_t i = 0; i < o.cache->slots; ++i) {
    Slot& s = o.cache->slot(i);
    const uint64_t tag = base::load(&s.tag);
    if (tag == 0 || file_of(tag) != o.file || !is_dirty(s)) continue;
    const int64_t error = write_out(o, s, tag, true, waits);
    if (first == 0) first = error;
  }
  return first;
}

bool any_dirty(const Opening& o) {
  for (uint32_t i = 0; i < o.cache->slots; ++i) {
    const Slot& s = o.cache->slot(i);
    if (of_file(o, s) && is_dirty(s)) return true;
  }
  return false;
}

// Through the forwarder, where there is one and more than this rank may have the file: what one
// rank has of it within a block costs no fewer requests there. False: it is still to be done.
bool flush_forwarded(Opening& o) {
  const bool ships = o.enrolled || base::load_relaxed(&entry(o).openings) > 1;
  return ships && any_dirty(o) && forwarded(o) && flush_by_forwarder(o);
}

// What several ranks close together they share between them, instead of waiting for one another at
// each block.
int64_t flush_together(Opening& o) {
  const int64_t error = write_dirty(o, false);
  const int64_t rest = write_dirty(o, true);
  return error != 0 ? error : rest;
}

}  // namespace

int64_t flush(Opening& o, bool patient) {
  if (!o.below.writes) return 0;
  const Inside in;
  if (in.nested()) return 0;
  if (patient && any_incomplete(o)) {
    for (Patience patience(o); any_incomplete(o) && patience.others_go_on();) {
    }
  }
  FileEntry& e = entry(o);
  const uint64_t progress = base::load(&e.progress);
  int64_t error = flush_forwarded(o) ? 0 : flush_together(o);
  if (const int64_t lost = take_lost(o); error == 0) error = lost;
  // Who accepts bytes now counts them before it raises the end: either is seen here.
  uint64_t end = base::load(&e.end);
  if (error == 0 && base::load(&e.progress) == progress)
    base::compare_exchange(&e.end, &end, uint64_t{0});
  return error;
}

}  // namespace weir::cache
