// SPDX-License-Identifier: Apache-2.0
// Slots of a cache: finding, locking, taking and giving them up. Order of locks: a slot's writer;
// or a set's; then a slot's, then an arena block's. Whoever has a slot's takes no set's, and sends
// no request to the file.
#pragma once

#include "layers/cache/cache.h"
#include "base/clock.h"

namespace weir::cache {

inline constexpr uint64_t kMillisecond = 1'000'000;
// For a rank that lives and does not go on.
inline constexpr uint64_t kLongestWaitNs = 2000 * kMillisecond;
// How long the known end of a file is valid, when others may make the file longer.
inline constexpr uint64_t kEndValidNs = 1000 * kMillisecond;
// Between looks whether the awaited rank goes on: at first, and after some of them.
inline constexpr uint64_t kLookNs = 5 * kMillisecond;
inline constexpr uint64_t kLongestLookNs = 80 * kMillisecond;

using base::now_ns;

// A call of the cache within another of the same thread (a signal handler's) would wait for itself.
// One that was left by a jump (siglongjmp) is found out by the next one, and gives up what it had
// locked.
class Inside {
 public:
  Inside();
  ~Inside();
  bool nested() const { return nested_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  volatile uint64_t here_;  // while the frame is there
  bool nested_;
};

inline FileEntry& entry(const Opening& o) { return o.cache->directory->files[o.file]; }
// The larger of the two is kept; the former value.
inline uint64_t raise(uint64_t* word, uint64_t value) {
  uint64_t before = base::load_relaxed(word);
  while (value > before && !base::compare_exchange(word, &before, value)) {
  }
  return before;
}
// Nothing of the file lies from there on, and nobody need be asked: all who write it do so through
// this cache.
inline bool past_end(const Opening& o, uint64_t offset) {
  const FileEntry& e = entry(o);
  if (o.policy.several_nodes || base::load_relaxed(&e.writers) == 0 ||
      base::load_relaxed(&e.looked_ns) == 0)
    return false;
  return offset >= base::load(&e.stamp.size) && offset >= base::load(&e.extent);
}
inline uint64_t tag(const Opening& o, uint64_t block) { return tag_of(o.file, block); }
// Of `bytes` from `offset` on, those of the first block.
inline uint32_t in_block(const Cache& c, uint64_t bytes, uint64_t offset) {
  const uint64_t room = c.block_bytes - offset % c.block_bytes;
  return static_cast<uint32_t>(bytes < room ? bytes : room);
}
// The program's memory of one call, as far as it has not been moved yet.
class Memory {
 public:
  // pieces: without empty ones in front of the call's last byte.
  explicit Memory(const iovec* pieces) : at_(pieces) {}
  char* begin() const { return static_cast<char*>(at_->iov_base) + used_; }
  // Bytes that lie together here, of so many that are wanted.
  uint64_t together(uint64_t bytes) const {
    const uint64_t there = at_->iov_len - used_;
    return there < bytes ? there : bytes;
  }
  void advance(uint64_t bytes) {
    for (used_ += bytes; used_ != 0 && used_ >= at_->iov_len; ++at_) used_ -= at_->iov_len;
  }
  // As many of so many bytes as lie in kPieces pieces.
  uint64_t within_pieces(uint64_t bytes) const {
    iovec pieces[kPieces];
    next(pieces, &bytes);
    return bytes;
  }
  // The next `*bytes` as pieces, fewer when they are more than kPieces; their number.
  int next(iovec* to, uint64_t* bytes) const {
    Memory rest = *this;
    int n = 0;
    uint64_t done = 0;
    for (; n < static_cast<int>(kPieces) && done < *bytes; ++n) {
      to[n] = {rest.begin(), rest.together(*bytes - done)};
      done += to[n].iov_len;
      rest.advance(to[n].iov_len);
    }
    *bytes = done;
    return n;
  }

 private:
  const iovec* at_;
  uint64_t used_ = 0;
};
inline void count(Opening& o, Statistic what, uint64_t n = 1) {
  if (o.counts != nullptr) base::fetch_add(&o.counts[what], n);
}
inline void touch(Cache& c, Slot& s) {
  const uint64_t clock = base::load_relaxed(&c.directory->clock);
  if (base::load_relaxed(&s.used) != clock) base::store_relaxed(&s.used, clock);
}

// Without a lock: what was so a moment ago.
inline Slot* find(const Cache& c, uint64_t tag) {
  Slot* s = &c.slot(c.set_of(block_of(tag)) * kWays);
  for (uint32_t way = 0; way < kWays; ++way, ++s) {
    if (base::load(&s->tag) == tag && base::load_relaxed(&s->revoked) == 0) return s;
  }
  return nullptr;
}

// False: its owner lives and does not go on, and the slot has to be bypassed. Where this opening
// can write what is dirty in it, that is done first, and the block has no slot any more: then the
// caller looks again.
bool lock(Opening& o, Slot& s);
// False: it was revoked meanwhile. What the caller did to the slot has been undone, and has to be
// done again if it is still wanted.
bool unlock(Cache& c, Slot& s);
// Before bytes of a block are written: where a slot was taken from an owner that is stopped in its
// write, that one writes these.
void renew_revoked(Cache& c, uint64_t tag, const char* from, uint32_t lo, uint32_t n);
// The slot's lock alone, repaired after a dead owner.
node::Taken take_lock(Opening& o, Slot& s);
void repair(Cache& c, Slot& s);
// The right to write the slot's bytes to the file; before its lock. False: who has it lives and
// does not go on; as lock().
bool take_writer(Opening& o, Slot& s);
// Takes the slot from whoever has a lock of it and does not go on. The caller has neither. False:
// nothing was done.
bool take_away(Opening& o, Slot& s);
// Until the rank that takes it away has done so; if that one has died, this one does.
void await_leaving(Opening& o, Slot& s);
// Whom it was taken from, under its lock. False: no room; it was not noted.
bool note_revoked(Slot& s, uint32_t owner);
bool forget_revoked(Slot& s, uint32_t owner);
// This rank is at it no longer. The slot is free again when it was the last one.
void out_of(Cache& c, Slot& s);
// Clean, and nobody is writing it. Under its lock.
inline bool idle(const Slot& s) { return s.touched == 0 && s.writing == 0 && s.leaving == 0; }
// The block's slot, locked; null when it has none. *stuck: it has one that has to be bypassed.
Slot* find_locked(Opening& o, uint64_t tag, bool* stuck);

// Under the slot's lock, what readers without it rely on: first the slot is no longer what they
// found, then the generation changes, then anything else may. Who has the new generation sees the
// slot as it is now; who has the former one finds that it has changed. A slot without dirty bytes
// becomes free, and who waits for it looks again.
void make_free(Slot& s);
// Of a whole block only the dirty bytes mean anything any more.
void make_partial(Slot& s);
// The pieces that are dirty, as the arena has it.
void count_pieces(Cache& c, Slot& s);

enum class Claimed { kMine, kThere, kDirty, kBusy, kNone };
// A slot for a block that has none. to_load: it is loading, by this rank, and not locked; else it
// is partial, and locked. kThere: the block has got one meanwhile; kDirty: *slot, unlocked, is one
// of this file that had to be written first; kBusy: the same, and somebody is writing it.
Claimed claim(Opening& o, uint64_t tag, bool to_load, Slot** slot);

enum class Waited { kOver, kMine, kTooLong };
// Until the slot is no longer loading that block. kMine: the rank that did is dead, and this one is
// to load it now.
Waited wait_loaded(Opening& o, Slot& s, uint64_t tag);

// Takes the file's stamp; what is kept of it is forgotten when it has changed. Within a call of the
// cache.
void look(Opening& o);

// Bytes [lo, lo + n) of a slot as pieces of memory that follow one another; their number, at most
// kPieces.
int pieces_of(const Cache& c, const Slot& s, uint32_t lo, uint32_t n, iovec* to);
void copy_out(const Cache& c, const Slot& s, uint32_t lo, uint32_t n, char* to);
void copy_in(const Cache& c, Slot& s, uint32_t lo, uint32_t n, const char* from);
void fill_zeros(const Cache& c, Slot& s, uint32_t lo, uint32_t hi);

// While a block is waited for: reads one that follows, if this rank reads in sequence. True when it
// did.
bool help(Opening& o, uint64_t block);

// Writes the dirty bytes of the slot if it still has that block of o's file, as few requests as
// their ranges allow. The caller has no lock of it. What is accepted meanwhile stays dirty. 0 or
// -errno. last: what cannot be written is given up. waits: for somebody else who writes it;
// otherwise nothing is done then.
int64_t write_out(Opening& o, Slot& s, uint64_t tag, bool last, bool waits = true);
bool all_complete(const Cache& c, const Slot& s);
// Under the lock of a slot that somebody is writing, before bytes of [lo, hi) are changed.
void note_again(Slot& s, uint32_t lo, uint32_t hi);

// Whether waiting for other ranks still makes sense; sleeps a little.
class Patience {
 public:
  explicit Patience(Opening& o) : opening_(o) {}
  ~Patience() {
    if (begun_ != 0) base::fetch_add(&entry(opening_).waiting, ~0u);
  }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  bool others_go_on();
  // Whether anything was waited for.
  bool begun() const { return begun_ != 0; }
  // What was waited for has come.
  void paid() {
    if (begun_ != 0) base::store_relaxed(&entry(opening_).fruitless, 0u);
  }

 private:
  uint32_t writers() const;

  Opening& opening_;
  uint64_t begun_ = 0, moved_ = 0, progress_ = 0;
  bool alone_ = false;
};

}  // namespace weir::cache
