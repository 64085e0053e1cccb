// SPDX-License-Identifier: Apache-2.0
#include "layers/cache/slots.h"

#include <signal.h>
#include <string.h>

#include "layers/cache/job.h"
#include "layers/machinery/node/registry.h"
#include "base/clock.h"
#include "base/syscall.h"

namespace weir::cache {
namespace {

constexpr uint64_t kMark = 0x656469736e692077;
WEIR_THREAD volatile uint64_t* inside = nullptr;  // the mark of the outermost call's frame

bool on_signal_stack() {
  stack_t about{};
  return base::system_call(SYS_sigaltstack, 0, reinterpret_cast<long>(&about)) == 0 &&
         (about.ss_flags & SS_ONSTACK) != 0;
}

// Bytes that the kernel puts on the stack for a handler, at least.
constexpr uintptr_t kSignalFrame = 1024;

// Whether the outermost call is over. A handler that interrupted it stands below it (stacks grow
// downwards), with room between for what the kernel saves; deeper ones stand where its frame was.
bool was_left(const volatile uint64_t* outermost, const volatile uint64_t* here) {
  if (reinterpret_cast<uintptr_t>(here) + kSignalFrame >= reinterpret_cast<uintptr_t>(outermost))
    return !on_signal_stack();
  const auto at = reinterpret_cast<uintptr_t>(outermost);
  return !base::can_read(at) || *outermost != (kMark ^ at);
}
constexpr uint32_t kHopeless = 64;
// Times that this process waited for others to open what it writes, and nobody came.
uint32_t alone_in_vain = 0;

bool take_memory(Cache& c, Slot& s) {
  if (s.backed != 0) return true;
  uint32_t* blocks = c.blocks + c.number(s) * c.pieces;
  uint32_t first = 0;
  while (first < c.pieces && blocks[first] != 0) ++first;  // of one who died here
  int got[kPieces];
  if (first < c.pieces && !writeback::take_blocks(c.arena, got, c.pieces - first)) return false;
  for (uint32_t piece = first; piece < c.pieces; ++piece) {
    writeback::set_writer(c.arena, got[piece - first], &s.writer);
    blocks[piece] = static_cast<uint32_t>(got[piece - first]) + 1;
  }
  base::store(&s.backed, 1u);
  return true;
}

// What is dirty in a slot that belongs to nobody is of no use to anybody: whoever had it writes it
// again.
void empty(Cache& c, Slot& s) {
  for (uint32_t piece = 0; s.backed != 0 && piece < c.pieces; ++piece) {
    const int block = c.arena_block(s, piece);
    writeback::lock_block(c.arena, block);
    writeback::mark_clean(c.arena, block);
    writeback::unlock_block(c.arena, block);
  }
  s.touched = s.complete = 0;
  make_free(s);
  base::store(&s.revoked, 0u);
  base::fetch_add(&c.directory->revoked, ~0u);
}

// Of a slot that was taken away: those that had it have died since.
bool is_over(Cache& c, Slot& s) {
  if (base::load(&s.revoked) == 0 || !node::try_acquire(s.lock)) return false;
  bool over = s.revoked != 0;
  for (uint32_t& owner : s.revoked_from) {
    if (owner != 0 && !node::revoked_lives(owner)) base::store(&owner, 0u);
    over = over && owner == 0;
  }
  if (over) empty(c, s);
  node::release(s.lock);
  return over;
}

bool abandoned(const Slot& s) { return s.state == kLoading && !node::alive(s.loader); }

// It cannot be another block's: something is dirty, or is being written.
bool is_held(Slot& s) {
  if (s.touched != 0 || base::load(&s.leaving) != 0) return true;
  return base::load(&s.writing) != 0 && base::load(&s.writer.word) != 0 &&
         !node::release_if_dead(s.writer);
}

// Not touched for longer. Since the clock last moved, by a claim, several may have been; of these,
// who reads in sequence needs the first block last.
bool is_older(const Slot& a, const Slot& b) {
  return a.used < b.used || (a.used == b.used && a.tag < b.tag);
}

// The best slot of a set to take; *dirty: the longest unused one of this file that would have to be
// written.
Slot* choose(Opening& o, uint32_t set, Slot** dirty) {
  Cache& c = *o.cache;
  Slot* best = nullptr;
  Slot* oldest = nullptr;
  for (uint32_t way = 0; way < kWays; ++way) {
    Slot& s = c.slot(set * kWays + way);
    const uint32_t state = base::load(&s.state);
    if (base::load(&s.revoked) != 0) continue;
    if (base::load(&s.tag) == 0 && state == kFree) return &s;
    if (state == kLoading) continue;
    if (is_held(s)) {
      if (file_of(s.tag) == o.file && (oldest == nullptr || is_older(s, *oldest))) oldest = &s;
    } else if (best == nullptr || is_older(s, *best)) {
      best = &s;
    }
  }
  *dirty = oldest;
  if (best != nullptr || oldest != nullptr) return best;
  for (uint32_t way = 0; way < kWays; ++way) {
    Slot& s = c.slot(set * kWays + way);
    if ((base::load(&s.revoked) == 0 && abandoned(s)) || is_over(c, s)) return &s;
  }
  return nullptr;
}

}  // namespace


Inside::Inside() {
  if (WEIR_UNLIKELY(inside != nullptr) && was_left(inside, &here_)) {
    node::forfeit_held();
    inside = nullptr;
  }
  nested_ = inside != nullptr;
  if (nested_) return;
  here_ = kMark ^ reinterpret_cast<uintptr_t>(&here_);
  inside = &here_;
}
Inside::~Inside() {
  if (nested_) return;
  inside = nullptr;
  here_ = 0;
}

// The owner of the slot's lock died: bytes that are not marked dirty may be half copied.
void repair(Cache& c, Slot& s) {
  for (uint32_t piece = 0; s.backed != 0 && piece < c.pieces; ++piece) {
    writeback::free_block_of_dead(c.arena, c.arena_block(s, piece));
  }
  count_pieces(c, s);
  if (s.state == kWhole || s.state == kPartial) {
    if (idle(s)) make_free(s);
    else make_partial(s);
  }
}

bool note_revoked(Slot& s, uint32_t owner) {
  for (uint32_t& place : s.revoked_from) {
    if (place != 0) continue;
    base::store(&place, owner);
    return true;
  }
  return false;
}

bool forget_revoked(Slot& s, uint32_t owner) {
  for (uint32_t& place : s.revoked_from) {
    if (place != owner) continue;
    base::store(&place, 0u);
    return true;
  }
  return false;
}

void out_of(Cache& c, Slot& s) {
  if (!forget_revoked(s, node::owner_word()) || s.revoked == 0) return;
  for (const uint32_t owner : s.revoked_from) {
    if (owner != 0) return;
  }
  empty(c, s);
}

bool lock(Opening& o, Slot& s) {
  if (WEIR_LIKELY(take_lock(o, s) != node::Taken::kNot)) {
    if (WEIR_LIKELY(s.leaving == 0)) return true;
    node::release(s.lock);
    await_leaving(o, s);
    return false;
  }
  o.held_up = true;
  count(o, kRevoked);
  take_away(o, s);
  return false;
}

bool unlock(Cache& c, Slot& s) {
  if (WEIR_LIKELY(node::release(s.lock))) return true;
  if (node::take(s.lock) == node::Taken::kNot) return false;
  out_of(c, s);
  node::release(s.lock);
  return false;
}

void renew_revoked(Cache& c, uint64_t tag, const char* from, uint32_t lo, uint32_t n) {
  const uint32_t set = c.set_of(block_of(tag));
  for (uint32_t way = 0; way < kWays; ++way) {
    Slot& s = c.slot(set * kWays + way);
    if (base::load(&s.revoked) != 0 && base::load(&s.revoked_tag) == tag)
      copy_in(c, s, lo, n, from);
  }
}

Slot* find_locked(Opening& o, uint64_t tag, bool* stuck) {
  *stuck = false;
  for (;;) {
    Slot* s = find(*o.cache, tag);
    if (s == nullptr) return nullptr;
    if (!lock(o, *s)) {
      *stuck = find(*o.cache, tag) == s;
      if (*stuck) return nullptr;
      continue;
    }
    if (s->tag == tag && s->revoked == 0) return s;
    unlock(*o.cache, *s);
  }
}

void make_free(Slot& s) {
  base::store(&s.tag, uint64_t{0});
  base::store(&s.state, uint32_t{kFree});
  base::fetch_add(&s.generation, 1u);
  node::wake(&s.state);
}

void make_partial(Slot& s) {
  base::store(&s.state, uint32_t{kPartial});
  base::fetch_add(&s.generation, 1u);
}

void count_pieces(Cache& c, Slot& s) {
  uint64_t touched = 0, complete = 0;
  for (uint32_t piece = 0; s.backed != 0 && piece < c.pieces; ++piece) {
    const int block = c.arena_block(s, piece);
    if (!writeback::is_dirty(c.arena, block)) continue;
    touched |= uint64_t{1} << piece;
    if (writeback::is_all_dirty(c.arena, block, 0, c.piece_bytes))
      complete |= uint64_t{1} << piece;
  }
  base::store(&s.complete, complete);
  base::store(&s.touched, touched);
}

Claimed claim(Opening& o, uint64_t tag, bool to_load, Slot** slot) {
  Cache& c = *o.cache;
  const uint32_t set = c.set_of(block_of(tag));
  node::Lock& set_lock = c.directory->set_locks[set];
  if (node::take(set_lock) == node::Taken::kNot) {
    o.held_up = true;
    count(o, kRevoked);
    return Claimed::kNone;
  }
  Claimed result = Claimed::kNone;
  Slot* dirty = nullptr;
  if (find(c, tag) != nullptr) {
    result = Claimed::kThere;
  } else if (Slot* s = choose(o, set, &dirty); s != nullptr) {
    if (take_lock(o, *s) == node::Taken::kNot) {
      node::release(set_lock);
      if (lock(o, *s)) unlock(c, *s);  // it takes the slot away
      return Claimed::kThere;
    }
    if (s->revoked == 0 && !is_held(*s) && (s->state != kLoading || abandoned(*s)) &&
        take_memory(c, *s)) {
      make_free(*s);  // a reader of the last block must not take what follows for that block's
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      s->discard = s->failures = s->accepted = s->writing = s->again_count = 0;
      s->valid = 0;
      s->complete = 0;
      s->loader = node::self();
      base::store(&s->used, base::fetch_add(&c.directory->clock, uint64_t{1}) + 1);
      base::store(&s->state, uint32_t{to_load ? kLoading : kPartial});
      base::store(&s->tag, tag);
      *slot = s;
      result = Claimed::kMine;
    } else {
      result = Claimed::kThere;  // it has changed: look again
    }
    if ((result != Claimed::kMine || to_load) && !unlock(c, *s)) result = Claimed::kThere;
    if (result == Claimed::kThere && s->backed == 0) result = Claimed::kNone;
  } else if (dirty != nullptr) {
    *slot = dirty;
    result = base::load(&dirty->writer.word) != 0 ? Claimed::kBusy : Claimed::kDirty;
  }
  node::release(set_lock);
  return result;
}

Waited wait_loaded(Opening& o, Slot& s, uint64_t tag) {
  const uint64_t begun = now_ns();
  Waited result = Waited::kOver;
  count(o, kWaits);
  // Who loads it wakes this rank: looks whether that one lives are for one that has died.
  for (uint64_t look_ns = kLookNs; base::load(&s.state) == kLoading && base::load(&s.tag) == tag;) {
    node::sleep_on(&s.state, kLoading, look_ns);
    if (look_ns < kLongestLookNs) look_ns *= 2;
    if (base::load(&s.state) != kLoading) break;
    const uint64_t waited = now_ns() - begun;
    if (waited < kLookNs / 2) continue;
    if (abandoned(s)) {
      bool mine = lock(o, s);
      if (mine) {
        mine = s.tag == tag && abandoned(s);
        if (mine) {
          s.loader = node::self();
          base::store(&s.discard, 0u);
        }
        mine = unlock(*o.cache, s) && mine;
      }
      if (!mine) continue;
      count(o, kTakenOver);
      result = Waited::kMine;
      break;
    }
    if (waited > kLongestWaitNs) {
      result = Waited::kTooLong;
      break;
    }
  }
  count(o, kWaited, now_ns() - begun);
  return result;
}

int pieces_of(const Cache& c, const Slot& s, uint32_t lo, uint32_t n, iovec* to) {
  int used = 0;
  while (n > 0) {
    const uint32_t piece = lo / c.piece_bytes, within = lo % c.piece_bytes;
    const uint32_t part = n < c.piece_bytes - within ? n : c.piece_bytes - within;
    char* at = c.bytes_of(s, piece) + within;
    if (used > 0 && static_cast<char*>(to[used - 1].iov_base) + to[used - 1].iov_len == at)
      to[used - 1].iov_len += part;
    else to[used++] = iovec{at, part};
    lo += part;
    n -= part;
  }
  return used;
}

void copy_out(const Cache& c, const Slot& s, uint32_t lo, uint32_t n, char* to) {
  iovec parts[kPieces];
  const int used = pieces_of(c, s, lo, n, parts);
  for (int i = 0; i < used; ++i) {
    memcpy(to, parts[i].iov_base, parts[i].iov_len);
    to += parts[i].iov_len;
  }
}

void copy_in(const Cache& c, Slot& s, uint32_t lo, uint32_t n, const char* from) {
  iovec parts[kPieces];
  const int used = pieces_of(c, s, lo, n, parts);
  for (int i = 0; i < used; ++i) {
    memcpy(parts[i].iov_base, from, parts[i].iov_len);
    from += parts[i].iov_len;
  }
}

void fill_zeros(const Cache& c, Slot& s, uint32_t lo, uint32_t hi) {
  if (lo >= hi) return;
  iovec parts[kPieces];
  const int used = pieces_of(c, s, lo, hi - lo, parts);
  for (int i = 0; i < used; ++i) memset(parts[i].iov_base, 0, parts[i].iov_len);
}

// Openings that may write the file. Those that have not yet moved a byte are not in the cache's
// table, but hold a lease.
uint32_t Patience::writers() const {
  const FileEntry& file = entry(opening_);
  const uint32_t begun = base::load_relaxed(&file.writers);
  return begun >= 2 ? begun : node::writers(file.device, file.inode);
}

bool Patience::others_go_on() {
  FileEntry& file = entry(opening_);
  const uint32_t writers = this->writers();
  const bool alone = writers < 2;
  // Where ranks were started together, others may be about to open the file.
  if (alone && !(job().launched && job().ranks > 1)) return false;
  uint32_t& in_vain = alone ? alone_in_vain : file.fruitless;
  if (begun_ == 0) {
    // Who has waited in vain often enough (all writers are openings of one process, or others
    // compute) tries it seldom.
    if (in_vain >= kHopeless && ++in_vain % kHopeless != 0) return false;
    begun_ = moved_ = now_ns();
    base::fetch_add(&file.waiting, 1u);
    progress_ = base::load(&file.progress);
    count(opening_, kStalls);
  }
  uint32_t word = 0;
  node::sleep_on(&word, 0, kMillisecond / 2);
  const uint64_t now = now_ns(), progress = base::load(&file.progress);
  if (progress != progress_ || alone != alone_) {
    if (alone_ && !alone) alone_in_vain = 0;
    progress_ = progress;
    moved_ = now;
    alone_ = alone;
  }
  uint64_t still = opening_.policy.wait_ns >> (in_vain < 6 ? in_vain : 6);
  // All wait: unless one of them only has to wake up, nobody will go on.
  const bool all_wait = !alone && base::load_relaxed(&file.waiting) >= writers;
  if (all_wait) still /= 2;
  if (now - moved_ < still && now - begun_ < kLongestWaitNs) return true;
  ++in_vain;
  return false;
}

}  // namespace weir::cache
