// SPDX-License-Identifier: Apache-2.0
// Writing through the cache: bytes are accepted into blocks, and written as blocks.
#include <errno.h>
#include <string.h>

#include "cache/slots.h"
#include "drain/client.h"
#include "os/syscall.h"

namespace weir::cache {
namespace {

constexpr int kTries = 64;

// Whether bytes lying dirty here would outlive this process.
bool accepting(Opening& o) {
  if (o.unprotected) return false;
  if (o.enrolled < 0) {
    const FileEntry& e = entry(o);
    o.enrolled = drain::enrol(o.cache->arena, {o.below.descriptor, e.device, e.inode, o.below.path, false, o.below.level});
    if (o.enrolled < 0) return false;
  }
  if (WEIR_LIKELY(drain::protected_now())) return drain::held(o.cache->arena, o.enrolled);
  return drain::ensure() && drain::held(o.cache->arena, o.enrolled);
}

void grow(Opening& o, uint64_t end) {
  FileEntry& e = entry(o);
  raise(&e.extent, end);
  raise(&e.end, end);
}

// A run of dirty bytes that lie one after another in the file.
struct Run {
  iovec pieces[kPieces];
  int count = 0;
  uint32_t lo = 0, hi = 0;
};

void clean(Cache& c, Slot& s, uint32_t lo, uint32_t hi) {
  for (uint32_t piece = lo / c.piece_bytes; piece < c.pieces && piece * c.piece_bytes < hi; ++piece) {
    const uint32_t base = piece * c.piece_bytes;
    const int block = c.arena_block(s, piece);
    drain::lock_block(c.arena, block);
    const uint32_t until = hi - base < c.piece_bytes ? hi - base : c.piece_bytes;
    drain::mark_clean(c.arena, block, lo > base ? lo - base : 0, until);
    drain::unlock_block(c.arena, block);
  }
}

// Bytes written of the run; fewer than all: *error says why.
uint32_t write_run(Opening& o, const Slot& s, uint64_t offset, Run& run, int64_t* error) {
  const uint32_t all = run.hi - run.lo;
  uint32_t done = 0;
  int first = 0;
  while (done < all) {
    if (WEIR_UNLIKELY(!node::is_mine(s.lock))) break;  // who took the slot away writes these bytes, or has
    const int64_t n = o.below.write(o.below.context, run.pieces + first, run.count - first, all - done, offset + run.lo + done);
    if (n == -EINTR || n == -EAGAIN) continue;
    if (n <= 0) {
      *error = n < 0 ? n : -EIO;
      break;
    }
    done += static_cast<uint32_t>(n);
    for (auto skip = static_cast<uint64_t>(n); skip > 0;) {
      iovec& piece = run.pieces[first];
      const uint64_t part = skip < piece.iov_len ? skip : piece.iov_len;
      piece.iov_base = static_cast<char*>(piece.iov_base) + part;
      piece.iov_len -= part;
      skip -= part;
      if (piece.iov_len == 0) ++first;
    }
  }
  return done;
}

class Out {
 public:
  Out(Opening& o, Slot& s, bool last) : o_(o), c_(*o.cache), s_(s), last_(last), offset_(block_of(s.tag) * o.cache->block_bytes) {}

  void add(uint32_t lo, uint32_t hi, char* at) {
    if (run_.count > 0 && run_.hi == lo) {
      iovec& before = run_.pieces[run_.count - 1];
      if (static_cast<char*>(before.iov_base) + before.iov_len == at) {
        before.iov_len += hi - lo;
      } else {
        run_.pieces[run_.count++] = iovec{at, hi - lo};
      }
      run_.hi = hi;
      return;
    }
    flush();
    run_.pieces[0] = iovec{at, hi - lo};
    run_.count = 1;
    run_.lo = lo;
    run_.hi = hi;
  }
  void flush() {
    if (run_.count == 0) return;
    int64_t error = 0;
    count(o_, run_.hi - run_.lo == c_.block_bytes ? kFullWrites : kOtherWrites);
    const uint32_t done = write_run(o_, s_, offset_, run_, &error);
    clean(c_, s_, run_.lo, run_.lo + done);
    if (error != 0) {
      error_ = error;
      lost_ += run_.hi - run_.lo - done;
      if (last_) clean(c_, s_, run_.lo + done, run_.hi);
    }
    run_.count = 0;
  }
  int64_t error() const { return error_; }
  uint64_t lost() const { return lost_; }

 private:
  Opening& o_;
  Cache& c_;
  Slot& s_;
  const bool last_;
  const uint64_t offset_;
  Run run_;
  int64_t error_ = 0;
  uint64_t lost_ = 0;
};

// The slot after its dirty bytes were written: of use to readers, or free.
void settle(Opening& o, Slot& s, bool was_complete) {
  Cache& c = *o.cache;
  count_pieces(c, s);
  if (s.touched != 0) return;
  const bool keep = o.policy.keeps_reads && !o.policy.several_nodes;
  if (keep && s.state == kWhole) return;
  if (keep && was_complete) {
    s.valid = c.block_bytes;
    base::store(&s.state, uint32_t{kWhole});
  } else {
    make_free(s);
  }
}

// Accepts the bytes into a locked slot; how many: fewer when there is no memory to note one more dirty range of a piece.
uint32_t put(Opening& o, Slot& s, const char* from, uint32_t lo, uint32_t n) {
  Cache& c = *o.cache;
  const uint64_t begin = block_of(s.tag) * c.block_bytes;
  uint32_t done = 0;
  if (s.state == kWhole && lo > s.valid) fill_zeros(c, s, s.valid, lo);
  while (done < n) {
    const uint32_t piece = (lo + done) / c.piece_bytes, within = (lo + done) % c.piece_bytes;
    const uint32_t part = n - done < c.piece_bytes - within ? n - done : c.piece_bytes - within;
    const int block = c.arena_block(s, piece);
    drain::lock_block(c.arena, block);
    if ((s.touched >> piece & 1) == 0) drain::assign(c.arena, block, o.enrolled, begin + piece * c.piece_bytes);
    memcpy(c.bytes_of(s, piece) + within, from + done, part);
    const bool marked = drain::mark_dirty(c.arena, block, within, within + part);
    const bool complete = marked && drain::is_all_dirty(c.arena, block, 0, c.piece_bytes);
    drain::unlock_block(c.arena, block);
    if (!marked) break;
    s.touched |= uint64_t{1} << piece;
    if (complete) s.complete |= uint64_t{1} << piece;
    done += part;
    if (s.state == kWhole && lo + done > s.valid) base::store(&s.valid, lo + done);
  }
  return done;
}

bool all_complete(const Cache& c, const Slot& s) {
  return s.complete == (c.pieces == 64 ? ~uint64_t{0} : (uint64_t{1} << c.pieces) - 1);
}

// Straight to the file, and what the cache has of these bytes renewed. The slot (may be null) is locked.
int64_t through(Opening& o, Slot* s, const char* from, uint32_t lo, uint32_t n, uint64_t offset) {
  count(o, kDirect);
  const iovec piece{const_cast<char*>(from), n};
  const int64_t done = o.below.write(o.below.context, &piece, 1, n, offset);
  if (done > 0) raise(&entry(o).extent, offset + static_cast<uint64_t>(done));
  if (s == nullptr) base::store(&entry(o).suspect, 1u);  // a block read meanwhile may be older
  if (s == nullptr || done <= 0) return done;
  const auto moved = static_cast<uint32_t>(done);
  if (s->touched != 0) {
    copy_in(*o.cache, *s, lo, moved, from);  // else a dirty range that could not be cut would bring the old bytes back
    clean(*o.cache, *s, lo, lo + moved);
    count_pieces(*o.cache, *s);
    base::fetch_add(&s->generation, 1u);
    if (s->touched != 0) base::store(&s->state, uint32_t{kPartial});
  }
  if (s->touched == 0) make_free(*s);
  return done;
}

// The block's slot for a write, locked; null: it has to go past the cache. A slot that somebody is loading is waited for.
Slot* slot_for_write(Opening& o, uint64_t wanted) {
  Cache& c = *o.cache;
  Patience patience(o);
  bool flushed = false;
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
    if (patience.others_go_on()) {
      --tries;
      continue;
    }
    flushed = true;
    if (!lock(o, *s)) continue;
    if (s->tag != 0 && file_of(s->tag) == o.file && s->touched != 0 && s->state != kLoading) write_out(o, *s, s->failures > 0);
    unlock(c, *s);
  }
  return nullptr;
}

int64_t write_block(Opening& o, const char* from, uint64_t block, uint32_t lo, uint32_t n) {
  Cache& c = *o.cache;
  const uint64_t offset = block * c.block_bytes + lo;
  const bool accepted = accepting(o);
  if (WEIR_UNLIKELY(base::load_relaxed(&c.directory->revoked) != 0)) renew_revoked(c, tag(o, block), from, lo, n);
  Slot* s = slot_for_write(o, tag(o, block));
  if (s == nullptr || !accepted || n == c.block_bytes) {
    const int64_t done = through(o, s, from, lo, n, offset);
    return s == nullptr || unlock(c, *s) || done < 0 ? done : 0;
  }
  const uint32_t done = put(o, *s, from, lo, n);
  count(o, kAccepted);
  base::fetch_add(&entry(o).progress, uint64_t{1});
  grow(o, offset + done);
  int64_t error = 0;
  if (all_complete(c, *s) || (done < n && s->failures > 0)) error = write_out(o, *s, s->failures > 0);
  if (!unlock(c, *s)) return 0;  // once more
  if (done == n || error != 0) return done;
  if (!lock(o, *s)) return done;
  if (s->tag == tag(o, block) && s->touched != 0) write_out(o, *s, false);
  unlock(c, *s);
  return done;
}

}  // namespace

int64_t write_out(Opening& o, Slot& s, bool last) {
  Cache& c = *o.cache;
  const bool complete = all_complete(c, s);
  Out out(o, s, last);
  for (uint32_t piece = 0; piece < c.pieces; ++piece) {
    if ((s.touched >> piece & 1) == 0) continue;
    const uint32_t base = piece * c.piece_bytes;
    const int block = c.arena_block(s, piece);
    drain::Range range{0, 0};
    while (drain::next_dirty(c.arena, block, range.hi, &range)) out.add(base + range.lo, base + range.hi, c.bytes_of(s, piece) + range.lo);
  }
  out.flush();
  if (out.error() != 0) {
    s.failures += 1;
    if (last) {
      FileEntry& e = entry(o);
      e.error = static_cast<uint32_t>(-out.error());
      o.errors_seen = base::fetch_add(&e.errors, uint64_t{1}) + 1;
      if (o.below.lost != nullptr) o.below.lost(o.below.context, static_cast<int>(-out.error()), out.lost());
    }
  } else {
    s.failures = 0;
  }
  settle(o, s, complete && out.error() == 0);
  return out.error();
}

int64_t write(Opening& o, const void* from, uint64_t bytes, uint64_t offset) {
  const Inside in;
  if (in.nested()) {
    const iovec piece{const_cast<void*>(from), bytes};
    const int64_t done = o.below.write(o.below.context, &piece, 1, bytes, offset);
    base::store(&entry(o).suspect, 1u);
    return done;
  }
  Cache& c = *o.cache;
  const auto* at = static_cast<const char*>(from);
  uint64_t done = 0;
  while (done < bytes) {
    const uint64_t block = (offset + done) / c.block_bytes;
    const auto lo = static_cast<uint32_t>((offset + done) % c.block_bytes);
    const uint64_t left = bytes - done;
    const uint32_t n = left < c.block_bytes - lo ? static_cast<uint32_t>(left) : c.block_bytes - lo;
    const int64_t put = write_block(o, at + done, block, lo, n);
    if (put < 0) return done > 0 ? static_cast<int64_t>(done) : put;
    done += static_cast<uint64_t>(put);
  }
  return static_cast<int64_t>(done);
}

namespace {

bool of_file(const Opening& o, const Slot& s) {
  const uint64_t tag = base::load(&s.tag);
  return tag != 0 && file_of(tag) == o.file;
}

// Whether the file's bytes [0, bytes) of its last block are dirty without a gap: whatever else comes makes the file longer.
bool without_gap(Cache& c, Slot& s, uint32_t bytes) {
  for (uint32_t piece = 0, at = 0; at < bytes; ++piece, at += c.piece_bytes) {
    const uint32_t end = bytes - at < c.piece_bytes ? bytes - at : c.piece_bytes;
    if ((s.touched >> piece & 1) == 0) return false;
    if (!drain::is_all_dirty(c.arena, c.arena_block(s, piece), 0, end)) return false;
  }
  return true;
}

bool has_gap(Opening& o, Slot& s, uint64_t extent) {
  Cache& c = *o.cache;
  if (!of_file(o, s) || base::load_relaxed(&s.touched) == 0 || all_complete(c, s)) return false;
  const uint64_t begin = block_of(s.tag) * c.block_bytes;
  if (extent >= begin + c.block_bytes) return true;
  if (!lock(o, s)) return false;
  const bool gap = of_file(o, s) && s.touched != 0 && extent > begin && !without_gap(c, s, static_cast<uint32_t>(extent - begin));
  return unlock(c, s) && gap;
}

bool any_incomplete(Opening& o) {
  const uint64_t extent = base::load(&entry(o).extent);
  for (uint32_t i = 0; i < o.cache->slots; ++i) {
    if (has_gap(o, o.cache->slot(i), extent)) return true;
  }
  return false;
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
  Cache& c = *o.cache;
  FileEntry& e = entry(o);
  const uint64_t progress = base::load(&e.progress);
  int64_t error = 0;
  for (uint32_t i = 0; i < c.slots; ++i) {
    Slot& s = c.slot(i);
    if (!of_file(o, s) || base::load_relaxed(&s.touched) == 0) continue;
    if (!lock(o, s)) continue;  // taken away, and written
    if (of_file(o, s) && s.touched != 0 && s.state != kLoading) {
      const int64_t result = write_out(o, s, true);
      if (error == 0) error = result;
    }
    unlock(c, s);
  }
  if (error == 0 && base::load(&e.progress) == progress) base::store(&e.end, uint64_t{0});
  return error;
}

}  // namespace weir::cache
