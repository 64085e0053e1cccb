// SPDX-License-Identifier: Apache-2.0
#include "layers/cache/between.h"

#include "layers/cache/slots.h"
#include "base/clock.h"

namespace weir::cache {
namespace {

enum PlaceState : uint64_t { kFreePlace, kFilling, kReady };
constexpr uint64_t kStateMask = uint64_t{3} << 62, kReadyBit = uint64_t{kReady} << 62;

constexpr uint64_t kHashMask = 0xffffffff;
constexpr int kTimeBits = 16, kTimeShift = 32, kUsesShift = kTimeShift + kTimeBits;
constexpr uint64_t kTickNs = 128 * kMillisecond;    // of the time in a word
constexpr uint64_t kOldTicks = 16;  // who has been filling a place for longer is taken for dead
constexpr uint64_t kPollNs = kMillisecond / 5, kLongestPollNs = 2 * kMillisecond;
constexpr int kSwapTries = 8;

uint64_t mixed(uint64_t key, uint64_t block) {
  uint64_t h = (key ^ block * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  h ^= h >> 31;
  return (h & kHashMask) != 0 ? h & kHashMask : 1;
}
uint64_t word_of(uint64_t state, uint64_t uses, uint64_t now, uint64_t hash) {
  return state << 62 | (uses & 0x3fff) << kUsesShift | (now / kTickNs & 0xffff) << kTimeShift |
         hash;
}
uint64_t state_of(uint64_t word) { return word >> 62; }
uint64_t uses_of(uint64_t word) { return word >> kUsesShift & 0x3fff; }
// The time is part of the word, so that nobody sees a claim without it. One from the future is a
// clock's of another node.
bool is_old(uint64_t word, uint64_t now) {
  const uint64_t age = (now / kTickNs - (word >> kTimeShift)) & 0xffff;
  return age > kOldTicks && age < 0x8000;
}

struct Spot {
  uint32_t home, first;  // place of the set
  uint64_t hash, block;
};

Spot spot_of(const Between& b, uint64_t key, uint64_t block) {
  const uint32_t sets = b.places / kPlaceWays;
  return {static_cast<uint32_t>((block + key) % b.homes),
          static_cast<uint32_t>(block / b.homes % sets) * kPlaceWays, mixed(key, block), block};
}
uint64_t head_at(uint32_t place) { return uint64_t{place} * sizeof(Place); }
uint64_t data_at(const Between& b, uint32_t place) {
  return uint64_t{b.places} * sizeof(Place) + uint64_t{place} * b.place_bytes;
}

bool get(Between& b, uint32_t home, uint64_t at, void* to, uint64_t bytes) {
  const iovec piece{to, bytes};
  return b.reach.get(b.reach.context, home, at, &piece, 1);
}
bool put(Between& b, uint32_t home, uint64_t at, const void* from, uint64_t bytes) {
  const iovec piece{const_cast<void*>(from), bytes};
  return b.reach.put(b.reach.context, home, at, &piece, 1);
}

bool give_up(Between& b) {
  base::store(&b.broken, 1u);
  return false;
}

enum class Found { kReady, kFilling, kClaimed, kNothing, kBroken };

// Looks at the set once; a block that is not there and has a place to go is claimed.
Found look(Opening& o, const Spot& spot, uint32_t* place, uint64_t* word) {
  Between& b = *o.between;
  const uint64_t now = base::clock_ns(CLOCK_REALTIME);
  for (int tries = 0; tries < kSwapTries; ++tries) {
    Place heads[kPlaceWays];
    if (!get(b, spot.home, head_at(spot.first), heads, sizeof heads))
      return give_up(b), Found::kBroken;
    int best = -1;
    for (uint32_t way = 0; way < kPlaceWays; ++way) {
      const Place& p = heads[way];
      const bool old = is_old(p.word, now);
      if (p.word != 0 && (p.word & kHashMask) == spot.hash) {
        *place = spot.first + way;
        *word = p.word;
        if (state_of(p.word) == kReady) return Found::kReady;
        if (!old) return Found::kFilling;
        best = static_cast<int>(way);
        break;
      }
      if (state_of(p.word) == kFilling && !old) continue;
      if (best < 0 || p.word == 0 || (heads[best].word != 0 && p.since_ns < heads[best].since_ns))
        best = static_cast<int>(way);
    }
    if (best < 0) return Found::kNothing;
    const uint32_t mine = spot.first + static_cast<uint32_t>(best);
    const uint64_t before = heads[best].word,
                   wanted = word_of(kFilling, uses_of(before) + 1, now, spot.hash);
    uint64_t found = 0;
    if (!b.reach.swap(b.reach.context, spot.home, head_at(mine), before, wanted, &found))
      return give_up(b), Found::kBroken;
    if (found != before) continue;
    o.claimed = wanted;
    o.claimed_home = spot.home;
    o.claimed_place = mine;
    return Found::kClaimed;
  }
  return Found::kNothing;
}

// The block from a place that was ready; -1 when it has become another's meanwhile. The head is
// looked at afterwards: as long as the word is the same, so is everything else.
int64_t fetch(Opening& o, const Spot& spot, uint32_t place, uint64_t word, const iovec* pieces,
              int count) {
  Between& b = *o.between;
  if (!b.reach.get(b.reach.context, spot.home, data_at(b, place), pieces, count))
    return give_up(b), -1;
  Place head;
  if (!get(b, spot.home, head_at(place), &head, sizeof head)) return give_up(b), -1;
  return head.word == word && head.key == o.share_key && head.block == spot.block ? head.bytes : -1;
}

bool usable(const Opening& o) {
  const Between& b = *o.between;
  return base::load_relaxed(&b.broken) == 0 && o.cache->block_bytes <= b.place_bytes &&
         b.reach.may(b.reach.context);
}

}  // namespace

constinit uint32_t barriers = 0;
constinit uint32_t shared_between_nodes = 0;

int64_t between_get(Opening& o, const iovec* pieces, int count_, uint64_t block) {
  o.claimed = 0;
  if (!usable(o)) return -1;
  const Spot spot = spot_of(*o.between, o.share_key, block);
  const uint64_t begun = now_ns();
  uint64_t poll_ns = kPollNs;
  int fetched = 0;
  for (uint64_t waited = 0; waited < kLongestWaitNs; waited = now_ns() - begun) {
    uint32_t place = 0;
    uint64_t word = 0;
    switch (look(o, spot, &place, &word)) {
      case Found::kReady: {
        const int64_t got = fetch(o, spot, place, word, pieces, count_);
        if (got >= 0) return count(o, kFromOtherNodes), got;
        if (o.between->broken != 0 || ++fetched == kSwapTries)
          return -1;  // others always come first, or one of the same hash
        break;
      }
      case Found::kFilling: {
        if (o.helping) return kBusy;
        if (help(o, block)) break;
        const Reach& reach = o.between->reach;
        if (reach.wait != nullptr) {
          reach.wait(reach.context, spot.home, head_at(place), word, kLookNs);
          break;
        }
        uint32_t idle = 0;
        node::sleep_on(&idle, 0, poll_ns);
        if (poll_ns < kLongestPollNs) poll_ns *= 2;
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
    reached =
        b.reach.put(b.reach.context, o.claimed_home, data_at(b, o.claimed_place), pieces, count_);
    const Place head{0, o.share_key, block, base::clock_ns(CLOCK_REALTIME), got, {}};
    if (reached) reached = put(b, o.claimed_home, at + 8, &head.key, 32);
  }
  uint64_t found = 0;
  const uint64_t done = got > 0 && reached ? kReadyBit | (mine & ~kStateMask) : 0;
  if (!b.reach.swap(b.reach.context, o.claimed_home, at, mine, done, &found) || !reached)
    give_up(b);
}

}  // namespace weir::cache
