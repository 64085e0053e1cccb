// SPDX-License-Identifier: Apache-2.0
#include "cache/between.h"

#include "cache/slots.h"
#include "os/clock.h"

namespace weir::cache {
namespace {

enum PlaceState : uint64_t { kFreePlace, kFilling, kReady };

constexpr uint64_t kHashBits = 48, kHashMask = (uint64_t{1} << kHashBits) - 1;
constexpr uint64_t kOldNs = 2000 * kMillisecond;    // who has been filling a place for longer is taken for dead
constexpr uint64_t kPollNs = kMillisecond / 5;
constexpr int kSwapTries = 8;

uint64_t mixed(uint64_t key, uint64_t block) {
  uint64_t h = (key ^ block * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  h ^= h >> 31;
  return (h & kHashMask) != 0 ? h & kHashMask : 1;
}
uint64_t word_of(uint64_t state, uint64_t uses, uint64_t hash) { return state << 62 | (uses & 0x3fff) << kHashBits | hash; }
uint64_t state_of(uint64_t word) { return word >> 62; }
uint64_t uses_of(uint64_t word) { return word >> kHashBits & 0x3fff; }

struct Spot {
  uint32_t home, first;  // place of the set
  uint64_t hash, block;
};

Spot spot_of(const Between& b, uint64_t key, uint64_t block) {
  const uint32_t sets = b.places / kPlaceWays;
  return {static_cast<uint32_t>((block + key) % b.homes), static_cast<uint32_t>(block / b.homes % sets) * kPlaceWays, mixed(key, block), block};
}
uint64_t head_at(uint32_t place) { return uint64_t{place} * sizeof(Place); }
uint64_t data_at(const Between& b, uint32_t place) { return uint64_t{b.places} * sizeof(Place) + uint64_t{place} * b.place_bytes; }

bool give_up(Between& b) {
  base::store(&b.broken, 1u);
  return false;
}

enum class Found { kReady, kFilling, kClaimed, kNothing, kBroken };

// Looks at the set once; a block that is not there and has a place to go is claimed.
Found look(Opening& o, const Spot& spot, uint32_t* place, uint64_t* word) {
  Between& b = *o.between;
  const uint64_t now = os::clock_ns(CLOCK_REALTIME);
  for (int tries = 0; tries < kSwapTries; ++tries) {
    Place heads[kPlaceWays];
    if (!b.reach.get(b.reach.context, spot.home, head_at(spot.first), heads, sizeof heads)) return give_up(b), Found::kBroken;
    int best = -1;
    for (uint32_t way = 0; way < kPlaceWays; ++way) {
      const Place& p = heads[way];
      const bool old = p.since_ns + kOldNs < now;
      if (p.word != 0 && (p.word & kHashMask) == spot.hash) {
        *place = spot.first + way;
        *word = p.word;
        if (state_of(p.word) == kReady) return Found::kReady;
        if (!old) return Found::kFilling;
        best = static_cast<int>(way);
        break;
      }
      if (state_of(p.word) == kFilling && !old) continue;
      if (best < 0 || p.word == 0 || (heads[best].word != 0 && p.since_ns < heads[best].since_ns)) best = static_cast<int>(way);
    }
    if (best < 0) return Found::kNothing;
    const uint32_t mine = spot.first + static_cast<uint32_t>(best);
    const uint64_t before = heads[best].word, wanted = word_of(kFilling, uses_of(before) + 1, spot.hash);
    uint64_t found = 0;
    if (!b.reach.swap(b.reach.context, spot.home, head_at(mine), before, wanted, &found)) return give_up(b), Found::kBroken;
    if (found != before) continue;
    o.claimed = wanted;
    o.claimed_home = spot.home;
    o.claimed_place = mine;
    const Place rest{wanted, o.share_key, spot.block, now, 0, {}};
    if (!b.reach.put(b.reach.context, spot.home, head_at(mine) + 8, &rest.key, 32)) return give_up(b), Found::kBroken;
    return Found::kClaimed;
  }
  return Found::kNothing;
}

// The block from a place that was ready; -1 when it has become another's meanwhile.
int64_t fetch(Opening& o, const Spot& spot, uint32_t place, uint64_t word, uint64_t block, const iovec* pieces, int count) {
  Between& b = *o.between;
  Place head;
  if (!b.reach.get(b.reach.context, spot.home, head_at(place), &head, sizeof head)) return give_up(b), -1;
  if (head.word != word || head.key != o.share_key || head.block != block) return -1;
  uint64_t at = data_at(b, place);
  for (int i = 0; i < count; ++i) {
    if (!b.reach.get(b.reach.context, spot.home, at, pieces[i].iov_base, pieces[i].iov_len)) return give_up(b), -1;
    at += pieces[i].iov_len;
  }
  uint64_t after = 0;
  if (!b.reach.get(b.reach.context, spot.home, head_at(place), &after, sizeof after)) return give_up(b), -1;
  return after == word ? head.bytes : -1;
}

bool usable(const Opening& o) {
  const Between& b = *o.between;
  return base::load_relaxed(&b.broken) == 0 && o.cache->block_bytes <= b.place_bytes && b.reach.may(b.reach.context);
}

}  // namespace

constinit uint32_t barriers = 0;
constinit uint32_t shared_between_nodes = 0;

int64_t between_get(Opening& o, const iovec* pieces, int count_, uint64_t block) {
  o.claimed = 0;
  if (!usable(o)) return -1;
  const Spot spot = spot_of(*o.between, o.share_key, block);
  const uint64_t begun = now_ns();
  for (uint64_t waited = 0; waited < kLongestWaitNs; waited = now_ns() - begun) {
    uint32_t place = 0;
    uint64_t word = 0;
    switch (look(o, spot, &place, &word)) {
      case Found::kReady: {
        const int64_t got = fetch(o, spot, place, word, block, pieces, count_);
        if (got >= 0) return count(o, kFromNodes), got;
        if (o.between->broken != 0) return -1;
        break;
      }
      case Found::kFilling: {
        if (o.helping) return kBusy;
        if (help(o, block)) break;
        uint32_t idle = 0;
        node::sleep_on(&idle, 0, kPollNs);
        break;
      }
      case Found::kClaimed:
      case Found::kNothing:
      case Found::kBroken: return -1;
    }
  }
  return -1;
}

void between_put(Opening& o, const iovec* pieces, int count_, uint64_t block, int64_t got) {
  if (o.claimed == 0 || !usable(o)) return;
  Between& b = *o.between;
  const uint64_t mine = o.claimed, at = head_at(o.claimed_place);
  o.claimed = 0;
  bool reached = true;
  if (got > 0) {
    uint64_t to = data_at(b, o.claimed_place);
    for (int i = 0; i < count_ && reached; ++i) {
      reached = b.reach.put(b.reach.context, o.claimed_home, to, pieces[i].iov_base, pieces[i].iov_len);
      to += pieces[i].iov_len;
    }
    const Place head{0, o.share_key, block, os::clock_ns(CLOCK_REALTIME), got, {}};
    if (reached) reached = b.reach.put(b.reach.context, o.claimed_home, at + 8, &head.key, 32);
  }
  uint64_t found = 0;
  const uint64_t done = got > 0 && reached ? word_of(kReady, uses_of(mine), mine & kHashMask) : 0;
  if (!b.reach.swap(b.reach.context, o.claimed_home, at, mine, done, &found) || !reached) give_up(b);
}

}  // namespace weir::cache
