// SPDX-License-Identifier: Apache-2.0
// Reading through the cache.
#include <errno.h>
#include <string.h>

#include "layers/cache/between.h"
#include "layers/cache/forwarding.h"
#include "layers/cache/slots.h"
#include "base/syscall.h"

namespace weir::cache {
namespace {

constexpr int kTries = 64;
constexpr int kMostWritten = 4096;
constexpr int kHelps = 8;  // blocks read while waiting for one
constexpr uint64_t kAhead = 8;  // how many blocks, or steps, behind it these lie at most
// Bytes that a parallel file system moves in the time of one request's latency. Openings share it:
// their requests overlap.
constexpr int64_t kRequestWorth = 512 << 10;
constexpr int64_t kShare = 4;  // openings beyond the first that may cost as much as it
constexpr int64_t kAgain = INT64_MIN;  // the slot has changed meanwhile

// Until `bytes` are there or the file ends.
int64_t read_fully(Opening& o, const iovec* pieces, int count, uint64_t bytes, uint64_t offset) {
  const int64_t got = o.below.read(o.below.context, pieces, count, bytes, offset);
  if (got <= 0 || static_cast<uint64_t>(got) == bytes) return got;
  uint64_t done = static_cast<uint64_t>(got);
  iovec rest[kPieces];
  while (done < bytes) {
    int n = 0;
    uint64_t skip = done;
    for (int i = 0; i < count; ++i) {
      if (skip >= pieces[i].iov_len) {
        skip -= pieces[i].iov_len;
        continue;
      }
      rest[n++] = iovec{static_cast<char*>(pieces[i].iov_base) + skip, pieces[i].iov_len - skip};
      skip = 0;
    }
    const int64_t more = o.below.read(o.below.context, rest, n, bytes - done, offset + done);
    if (more < 0) return more;
    if (more == 0) break;
    done += static_cast<uint64_t>(more);
  }
  return static_cast<int64_t>(done);
}

// A short answer in front of bytes that are known to be there is not the end of the file.
int64_t direct(Opening& o, const iovec* pieces, int used, uint64_t n, uint64_t offset) {
  count(o, kPassedOn);
  const int64_t got = o.below.read(o.below.context, pieces, used, n, offset);
  if (WEIR_LIKELY(got <= 0 || static_cast<uint64_t>(got) == n)) return got;
  const uint64_t end = offset + static_cast<uint64_t>(got);
  const FileEntry& e = entry(o);
  if (end >= base::load(&e.stamp.size) && end >= base::load(&e.extent)) return got;
  Memory unread(pieces);
  unread.advance(static_cast<uint64_t>(got));
  iovec rest[kPieces];
  uint64_t left = n - static_cast<uint64_t>(got);
  const int count = unread.next(rest, &left);
  const int64_t more = read_fully(o, rest, count, left, end);
  return more < 0 ? got : got + more;  // the rest of the program's memory may be out of reach
}
int64_t direct(Opening& o, void* to, uint64_t n, uint64_t offset) {
  const iovec piece{to, n};
  return direct(o, &piece, 1, n, offset);
}
int64_t direct(Opening& o, const Memory& to, uint64_t n, uint64_t offset) {
  iovec pieces[kPieces];
  const int used = to.next(pieces, &n);
  return direct(o, pieces, used, n, offset);
}

int64_t openings_of(const Opening& o) {
  const int64_t openings = base::load_relaxed(&entry(o).openings);
  return openings > 1 ? openings : 1;
}

// What loading may have cost beyond what it has saved: this much on either side of none.
int64_t most_debt(const Opening& o) {
  return (2 * kShare + openings_of(o) - 1) * int64_t{o.policy.wasted_blocks} *
         o.cache->block_bytes / kShare;
}

// So many bytes of a block were loaded, in the place of a read that wanted `wanted` of them: as
// many again may be in vain. When blocks serve too few reads more (random reads of a large file)
// the file is read past the cache from then on.
void pay(Opening& o, int64_t got, uint32_t wanted) {
  o.loaded = true;
  const int64_t bytes = got - 2 * int64_t{wanted};
  if (o.policy.wasted_blocks == 0 || o.between != nullptr || bytes <= 0) return;
  FileEntry& e = entry(o);
  if (base::fetch_add(&e.debt, bytes) + bytes > most_debt(o))
    __atomic_fetch_or(&e.bypassed, uint32_t{kReadsBypassed}, __ATOMIC_RELAXED);
}

// A read was served from memory. Where the cache wins the credit is full, and nothing is stored.
void earn(Opening& o, uint64_t bytes) {
  if (o.policy.wasted_blocks == 0) return;
  FileEntry& e = entry(o);
  if (base::load_relaxed(&e.debt) > -most_debt(o))
    base::fetch_add(&e.debt, -(kRequestWorth / openings_of(o) + 2 * static_cast<int64_t>(bytes)));
}

bool keeps_reads(const Opening& o) {
  return o.policy.keeps_reads && (bypassed(o) & kReadsBypassed) == 0;
}
// Whether a block that is not there is loaded for a read.
bool loads(const Opening& o) {
  return keeps_reads(o) &&
         !(o.policy.several_nodes && base::load_relaxed(&entry(o).writers) != 0);
}

int64_t fetch(Opening& o, Slot& s, uint64_t block) {
  Cache& c = *o.cache;
  iovec pieces[kPieces];
  const int used = pieces_of(c, s, 0, c.block_bytes, pieces);
  const bool between = o.between != nullptr && o.share_key != 0;
  if (between) {
    const int64_t got = between_get(o, pieces, used, block);
    if (got >= 0 || got == kBusy) return got;
  }
  FileEntry& e = entry(o);
  count(o, kLoads);
  if (block < raise(&e.reached, block + 1)) count(o, kReloads);
  const int64_t got = read_fully(o, pieces, used, c.block_bytes, block * c.block_bytes);
  if (between) between_put(o, pieces, used, block, got);
  return got;
}

// Fills a slot that this rank has claimed. Bytes, 0 at the end of the file, or -errno; the slot is
// whole or free after it.
int64_t load(Opening& o, Slot& s, uint64_t block) {
  const int64_t got = fetch(o, s, block);
  if (!lock(o, s)) return got;  // whoever waits for the block loads it again
  if (s.tag == tag(o, block) && s.state == kLoading && s.loader == node::self()) {
    if (got <= 0 || s.discard != 0) {
      make_free(s);
    } else {
      s.valid = static_cast<uint32_t>(got);
      base::store(&s.state, uint32_t{kWhole});
      node::wake(&s.state);
    }
  }
  unlock(*o.cache, s);
  return got;
}

// Bytes of a whole block, as many as the file has of them.
int64_t from_whole(Opening& o, Slot& s, uint64_t wanted, char* to, uint32_t lo, uint32_t n) {
  const uint32_t generation = base::load(&s.generation);
  if (base::load(&s.tag) != wanted || base::load(&s.state) != kWhole) return kAgain;
  const uint32_t valid = base::load(&s.valid);
  uint32_t have = valid > lo ? (valid - lo < n ? valid - lo : n) : 0;
  copy_out(*o.cache, s, lo, have, to);
  if (WEIR_UNLIKELY(have < n)) {  // the file has become longer elsewhere: here is a hole
    const uint64_t begin = block_of(wanted) * o.cache->block_bytes + lo,
                   extent = base::load(&entry(o).extent);
    const uint64_t there = extent > begin ? (extent - begin < n ? extent - begin : n) : 0;
    if (there > have) {
      memset(to + have, 0, there - have);
      have = static_cast<uint32_t>(there);
    }
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (base::load(&s.generation) != generation || base::load(&s.tag) != wanted) return kAgain;
  touch(*o.cache, s);
  return have;
}

// Dirty bytes of [lo, lo + n) of a locked slot, copied over what the file has there. The end of the
// last of them, relative to lo.
uint32_t overlay(Cache& c, Slot& s, char* to, uint32_t lo, uint32_t n, uint64_t* covered) {
  uint32_t end = 0;
  *covered = 0;
  for (uint32_t piece = lo / c.piece_bytes; piece < c.pieces && piece * c.piece_bytes < lo + n;
       ++piece) {
    if ((s.touched >> piece & 1) == 0) continue;
    const uint32_t base = piece * c.piece_bytes;
    writeback::Range range{0, lo > base ? lo - base : 0};
    while (base + range.hi < lo + n &&
           writeback::next_dirty(c.arena, c.arena_block(s, piece), range.hi, &range)) {
      const uint32_t from = base + range.lo;
      const uint32_t until = base + range.hi < lo + n ? base + range.hi : lo + n;
      if (from >= until) break;
      memcpy(to + (from - lo), c.bytes_of(s, piece) + (from - base), until - from);
      *covered += until - from;
      end = until - lo;
    }
  }
  return end;
}

// Rises when dirty bytes of [lo, hi) become clean, whoever wrote them. What was read from the file
// before that may be older.
uint64_t cleanings(const Cache& c, const Slot& s, uint32_t lo, uint32_t hi) {
  uint64_t n = 0;
  for (uint32_t piece = lo / c.piece_bytes; piece < c.pieces && piece * c.piece_bytes < hi; ++piece)
    n += writeback::cleanings(c.arena, c.arena_block(s, piece));
  return n;
}

// What a read of the file and of what is dirty beside it has to find again.
struct Seen {
  Seen(const Cache& c, const Slot& s, uint32_t lo, uint32_t hi)
      : tag(base::load(&s.tag)),
        generation(base::load(&s.generation)),
        cleaned(cleanings(c, s, lo, hi)) {}
  bool operator==(const Seen&) const = default;
  uint64_t tag;
  uint32_t generation;
  uint64_t cleaned;
};

// The rest of a partial block from the file, for a cache that keeps it. False: it has changed
// meanwhile, or cannot be read.
bool make_whole(Opening& o, Slot& s, uint64_t block, uint32_t wanted) {
  Cache& c = *o.cache;
  if (o.spare == nullptr) {
    const long got = base::map(c.block_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (base::failed(got)) return false;
    o.spare = reinterpret_cast<char*>(got);
  }
  const iovec piece{o.spare, c.block_bytes};
  const Seen seen(c, s, 0, c.block_bytes);
  const bool beyond = past_end(o, block * c.block_bytes);
  const int64_t got = beyond ? 0 : read_fully(o, &piece, 1, c.block_bytes, block * c.block_bytes);
  if (got < 0) return false;
  if (!beyond) count(o, kLoads);
  pay(o, got, wanted);
  const auto valid = static_cast<uint32_t>(got);
  memset(o.spare + valid, 0, c.block_bytes - valid);
  if (!lock(o, s)) return false;
  uint64_t covered = 0;
  const uint32_t end = overlay(c, s, o.spare, 0, c.block_bytes, &covered);
  const bool same =
      seen.tag == tag(o, block) && seen == Seen(c, s, 0, c.block_bytes) && s.state == kPartial;
  if (same) {
    copy_in(c, s, 0, c.block_bytes, o.spare);
    s.valid = end > valid ? end : valid;
    base::store(&s.state, uint32_t{kWhole});
  }
  return unlock(c, s) && same;
}

// What the file has, under what is dirty after it was read. A lock whose owner does not go on is
// not needed: that one alone changes both.
int64_t beside(Opening& o, Slot& s, uint64_t block, char* to, uint32_t lo, uint32_t n) {
  Cache& c = *o.cache;
  const Seen seen(c, s, lo, lo + n);
  if (seen.tag != tag(o, block)) return kAgain;
  const int64_t got = direct(o, to, n, block * c.block_bytes + lo);
  if (got < 0) return got;
  memset(to + got, 0, n - static_cast<uint64_t>(got));
  const bool locked = lock(o, s);
  uint64_t covered = 0;
  const uint32_t end = overlay(c, s, to, lo, n, &covered);
  const bool same = seen == Seen(c, s, lo, lo + n);
  if ((locked && !unlock(c, s)) || !same) return kAgain;
  return end > got ? end : got;
}

int64_t from_partial(Opening& o, Slot& s, uint64_t block, char* to, uint32_t lo, uint32_t n) {
  Cache& c = *o.cache;
  if (!lock(o, s)) return find(c, tag(o, block)) == &s ? beside(o, s, block, to, lo, n) : kAgain;
  uint64_t covered = 0;
  const Seen seen(c, s, lo, lo + n);
  const bool there = s.tag == tag(o, block) && s.state == kPartial;
  if (there) overlay(c, s, to, lo, n, &covered);
  const bool same = seen == Seen(c, s, lo, lo + n);
  if (!unlock(c, s) || !there || !same) return kAgain;
  if (covered == n) return n;
  const bool keep = keeps_reads(o) && !o.policy.several_nodes;
  return keep && make_whole(o, s, block, n) ? kAgain : beside(o, s, block, to, lo, n);
}

}  // namespace

// How many steps ahead blocks are read at equal distances: no further than the reader has come so,
// and than a quarter of the slots reaches if other ranks read what lies between; and while the
// cache has saved more than it has cost.
uint64_t steps_ahead(const Opening& o) {
  if (o.steps == 0 || (o.policy.wasted_blocks != 0 && base::load_relaxed(&entry(o).debt) >= 0))
    return 0;
  const uint64_t most = o.cache->slots / 4 / o.step;
  return o.steps < most ? o.steps : most;
}

// Reads one that follows. Only for who reads in sequence, or at equal distances.
bool help(Opening& o, uint64_t block) {
  if (o.helping || o.enrolled) return false;
  const bool in_sequence = o.next_block == block || o.next_block == block + 1;
  const uint64_t step = in_sequence ? 1 : o.step;
  uint64_t ahead = in_sequence ? o.cache->slots / 4 : steps_ahead(o);
  if (ahead > kAhead) ahead = kAhead;
  o.helping = true;
  bool helped = false;
  for (uint64_t i = 1; i <= ahead && !helped; ++i) helped = prepare(o, block + i * step);
  o.helping = false;
  return helped;
}

namespace {

// Nothing lies from `at` on, as far as is known. Who else may lengthen the file is on another node,
// and is asked for once in kEndValidNs: one request for a program that reads at the end over and
// over.
bool at_end(Opening& o, uint64_t at) {
  const FileEntry& e = entry(o);
  if (past_end(o, at)) return true;
  if (!o.policy.keeps_reads || (o.policy.several_nodes && base::load_relaxed(&e.writers) != 0))
    return false;
  const auto ends = [&] {
    return at >= base::load(&e.stamp.size) && at >= base::load(&e.extent) &&
           at >= base::load(&e.end);
  };
  if (!ends()) return false;
  if (now_ns() - base::load(&e.looked_ns) >= kEndValidNs) look(o);
  return ends();
}

// A call that begins in this block.
void note_step(Opening& o, uint64_t block) {
  if (block == o.last_block) return;
  const uint64_t step = block - o.last_block;
  o.steps = block < o.last_block ? 0 : step == o.step ? o.steps + 1 : 0;
  o.step = step;
  o.last_block = block;
}

// Whether a forwarder reads the block: of what one rank alone reads of a file's first it would only
// make the same request.
bool ships_read(Opening& o, uint64_t block) {
  if (!o.forwards || block * o.cache->block_bytes >= base::load(&entry(o).stamp.size)) return false;
  return (o.enrolled || block != 0 || openings_of(o) > 1) && forwarded(o);
}

int64_t read_block(Opening& o, char* to, uint64_t block, uint32_t lo, uint32_t n) {
  Cache& c = *o.cache;
  const uint64_t wanted = tag(o, block);
  const bool keeps = loads(o);
  bool loaded = false;
  int helped = 0, written = 0;
  for (int tries = 0; tries < kTries; ++tries) {
    Slot* s = find(c, wanted);
    if (s == nullptr) {
      if (!keeps) break;
      if (past_end(o, block * c.block_bytes)) return 0;
      if (tries == 0 && ships_read(o, block)) {
        loaded = load_by_forwarder(o, block, n);
        o.loaded |= loaded;
        continue;
      }
      const Claimed claimed = claim(o, wanted, true, &s);
      if (claimed == Claimed::kThere) continue;
      if (claimed != Claimed::kMine) break;
      const int64_t got = load(o, *s, block);
      if (got == 0) return 0;
      if (got < 0) break;  // the program asks itself, and gets its own error
      pay(o, got, n);
      loaded = true;
      continue;
    }
    int64_t result = kAgain;
    switch (base::load(&s->state)) {
      case kWhole: result = from_whole(o, *s, wanted, to, lo, n); break;
      case kPartial:
        result = from_partial(o, *s, block, to, lo, n);
        if (result == kAgain && ++written < kMostWritten)
          --tries;  // bytes of it became clean meanwhile: the file alone has not all of them yet
        break;
      case kLoading: {
        if (helped++ < kHelps && help(o, block)) break;
        const Waited waited = wait_loaded(o, *s, wanted);
        if (waited == Waited::kMine) pay(o, load(o, *s, block), n);
        if (waited == Waited::kTooLong) return direct(o, to, n, block * c.block_bytes + lo);
        break;
      }
    }
    if (result == kAgain) continue;
    if (!loaded) count(o, kHits);
    return result;
  }
  return direct(o, to, n, block * c.block_bytes + lo);
}

// Bytes of a read from `offset` on that one request can take from the file: of blocks that are not
// there and are not loaded.
uint64_t in_one_request(Opening& o, uint64_t bytes, uint64_t offset) {
  const Cache& c = *o.cache;
  if (loads(o)) return 0;
  uint64_t run = 0;
  while (run < bytes && find(c, tag(o, (offset + run) / c.block_bytes)) == nullptr) {
    run += in_block(c, bytes - run, offset + run);
  }
  return run;
}

// Bytes that the file does not have yet, but has to its readers: up to the end of what was accepted
// there are zeros.
uint64_t zeros_to_end(Opening& o, char* to, uint64_t bytes, uint64_t offset) {
  const uint64_t end = base::load(&entry(o).end);
  if (end <= offset) return 0;
  const uint64_t n = end - offset < bytes ? end - offset : bytes;
  memset(to, 0, n);
  return n;
}

}  // namespace

bool prepare(Opening& o, uint64_t block, uint32_t wanted) {
  Cache& c = *o.cache;
  if (!keeps_reads(o) || block * c.block_bytes >= entry(o).stamp.size ||
      find(c, tag(o, block)) != nullptr)
    return false;
  Slot* s = nullptr;
  if (claim(o, tag(o, block), true, &s) != Claimed::kMine) return false;
  const int64_t got = load(o, *s, block);
  pay(o, got, wanted);
  return got > 0;
}

int64_t read(Opening& o, const iovec* pieces, int count, uint64_t bytes, uint64_t offset) {
  const Inside in;
  if (in.nested()) return o.below.read(o.below.context, pieces, count, bytes, offset);
  uint32_t one = 1;
  if (WEIR_UNLIKELY(base::load_relaxed(&entry(o).suspect) != 0) &&
      base::compare_exchange(&entry(o).suspect, &one, 0u))
    invalidate(o);
  Cache& c = *o.cache;
  Memory at(pieces);
  uint64_t done = 0;
  const FileEntry& e = entry(o);
  if (WEIR_UNLIKELY(base::load_relaxed(&e.looked_ns) == 0)) look(o);
  if (WEIR_UNLIKELY(at_end(o, offset))) return 0;
  o.loaded = false;
  note_step(o, offset / c.block_bytes);
  bool one_by_one = false;
  while (done < bytes) {
    // What is there goes to the program first: it asks again if it wants to know about the end.
    if (done > 0 && offset + done >= base::load_relaxed(&e.stamp.size) &&
        offset + done >= base::load_relaxed(&e.extent))
      break;
    const uint64_t begin = offset + done, block = begin / c.block_bytes;
    const auto lo = static_cast<uint32_t>(begin % c.block_bytes);
    const auto n = static_cast<uint32_t>(at.together(in_block(c, bytes - done, begin)));
    const bool one = one_by_one || n == bytes - done;
    if (o.enrolled && keeps_reads(o)) expect_reads(o, block);
    uint64_t run = one ? 0 : in_one_request(o, bytes - done, begin);
    if (run > n) run = at.within_pieces(run);
    int64_t got = run > n ? direct(o, at, run, begin) : read_block(o, at.begin(), block, lo, n);
    // the block ends before it: has the file grown since?
    if (got == 0 && find(c, tag(o, block)) != nullptr && !at_end(o, begin)) {
      look(o);
      if (!at_end(o, begin)) {
        invalidate(o);
        got = read_block(o, at.begin(), block, lo, n);
      }
    }
    if (got < 0) return done > 0 ? static_cast<int64_t>(done) : got;
    done += static_cast<uint64_t>(got);
    if (done < bytes) at.advance(static_cast<uint64_t>(got));
    o.next_block = (offset + done) / c.block_bytes;
    if (run > n && got > 0) {
      // the file ends there, unless bytes that it does not have yet follow
      one_by_one = static_cast<uint64_t>(got) < run;
      continue;
    }
    if (static_cast<uint32_t>(got) < n) {
      const uint64_t gap = n - static_cast<uint64_t>(got);
      const uint64_t zeros = zeros_to_end(o, at.begin(), gap, offset + done);
      done += zeros;
      if (done < bytes) at.advance(zeros);
      if (zeros == 0 || static_cast<uint32_t>(got) + zeros < n) break;
    }
  }
  if (!o.loaded && done > 0 && keeps_reads(o)) earn(o, done);
  return static_cast<int64_t>(done);
}

}  // namespace weir::cache
