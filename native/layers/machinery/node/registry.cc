// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/node/registry.h"

#include "layers/machinery/node/table.h"
#include "base/clock.h"
#include "base/syscall.h"

namespace weir::node {
namespace {

constexpr uint64_t kPatienceNs = 60'000'000'000;
constexpr uint64_t kStepNs = 20'000'000;

using Help = void (*)();
constinit Help help = nullptr;

using base::now_ns;

bool layered(const Lease* l) { return (base::load(&l->access) & kLayered) != 0; }
bool is_own(const Lease* l) { return l->holder == self(); }

// Whether somebody must drain it first if its holder has died.
bool may_hold_bytes(const Lease* l) {
  return layered(l) && base::load(&l->recall) != kHoldsNothing &&
         (base::load(&l->access) & kWrites) != 0;
}

// Whether somebody could see another's bytes late.
bool conflicts(Entry* entry) {
  settle(entry);
  return entry->leases > 1 && entry->layered != 0 && entry->writers != 0 &&
         entry->sharing != entry->leases;
}

// Whether holders live: asked once for leases of one holder that follow each other.
class Living {
 public:
  bool operator()(Identity who) {
    if (!(who == last_)) lives_ = who == self() || alive(who);
    last_ = who;
    return lives_;
  }

 private:
  Identity last_{};
  bool lives_ = false;
};

// Frees what the dead hold and need nobody to drain for. True: somebody must drain first.
// until_living: up to the first lease (except one) whose holder lives.
bool reap(Bucket& bucket, Entry* entry, const Lease* except, bool until_living = false) {
  bool must_wait = false;
  Living lives;
  for (uint32_t at = entry->first; at != 0;) {
    Lease* l = lease_at(at);
    at = l->next;
    if (l == except) continue;
    if (lives(l->holder)) {
      if (until_living) break;
      continue;
    }
    if (may_hold_bytes(l)) must_wait = true;
    else unlink_lease(bucket, l);
  }
  return must_wait;
}

bool any_layered(Entry* entry, const Lease* except) {
  settle(entry);
  return entry->layered > (except != nullptr && layered(except) ? 1u : 0u);
}

// True: there are layered holders other than `except` that hold something; they have been notified.
bool call_back(Entry* entry, const Lease* except) {
  bool any = false;
  for (uint32_t at = entry->first; at != 0; at = lease_at(at)->next) {
    Lease* l = lease_at(at);
    if (l == except || !layered(l)) continue;
    if (take_away(l)) {
      make_plain(entry, l);
      continue;
    }
    any = true;
    recall_lease(l);
  }
  return any;
}

// Whether all layered holders are of other PID namespaces, and nobody can tell that they live.
bool all_unreachable(const Entry* entry, const Lease* except) {
  for (uint32_t at = entry->first; at != 0; at = lease_at(at)->next) {
    const Lease* l = lease_at(at);
    if (l != except && layered(l) &&
        (!is_foreign(l->holder) || life_of_member(l->holder) != Life::kUnknown))
      return false;
  }
  return true;
}

// Called and left with the bucket's lock, which it lets go while it waits. The entry lives as long
// as `own`, or the lock is held.
struct Waiting {
  Bucket& bucket;
  uint64_t begun = now_ns(), end = begun + kPatienceNs;
  uint64_t next_help = 0, next_look = 0;
  bool dead = false;  // somebody must drain first
  bool lost = false;  // the lock, to one who does not go on

  // Layered holders other than `except` are there. They are notified, and the dead among them
  // found, at most once a step: each that leaves wakes who waits.
  bool must_wait(Entry* entry, const Lease* except) {
    if (!any_layered(entry, except)) return false;
    const uint64_t now = now_ns();
    if (now < next_look) return true;
    next_look = now + kStepNs;
    if (!call_back(entry, except)) return false;
    dead = reap(bucket, entry, except);
    if (now - begun >= kLockWaitNs && all_unreachable(entry, except)) return false;
    return any_layered(entry, except);
  }

  bool pause(Entry* entry) {
    uint64_t now = now_ns();
    if (now >= end) return false;
    const uint32_t left = base::load(&entry->left);
    uint32_t* word = &entry->left;
    release(bucket.lock);
    if (dead && help != nullptr && now >= next_help) {
      next_help = now + 5 * kStepNs;
      help();
    }
    sleep_on(word, left, kStepNs);
    lost = take(bucket.lock) == Taken::kNot;
    return !lost;
  }
};

// The dead are no conflict. A file that is plain for all stays so while one of the others lives.
void wait_for_dead(Waiting& waiting, Entry* entry, Lease* own) {
  if (entry->contended != 0 && !any_layered(entry, own)) {
    reap(waiting.bucket, entry, own, true);
    return;
  }
  while (conflicts(entry)) {
    waiting.dead = reap(waiting.bucket, entry, own);
    if (!waiting.dead || !waiting.pause(entry)) return;
  }
}

enum class Held : bool { kDrained, kKept };  // bytes of the dead: drained already, or to be kept

// Frees every lease whose holder is one of those. Number freed.
uint32_t release_all_of(bool (*wanted)(Identity, void*), void* with, Held held) {
  uint32_t freed = 0;
  Identity last{};
  bool last_wanted = false;
  for (uint32_t number = 1; number <= base::load(&registry->most_leases); ++number) {
    Lease* l = lease_at(number);
    const uint32_t state = base::load(&l->state);
    const Identity holder = l->holder;
    if (state == kFree || holder.pid == 0) continue;
    if (!(holder == last)) {
      last = holder;
      last_wanted = wanted(holder, with);
    }
    if (!last_wanted || (held == Held::kKept && may_hold_bytes(l))) continue;
    if (state == kTaken || l->entry == 0) {  // its holder died before it was linked
      // Others look, too: who takes the holder away frees it, once.
      uint64_t there = uint64_t{holder.start} << 32 | holder.pid;
      if (!base::compare_exchange(reinterpret_cast<uint64_t*>(&l->holder), &there, uint64_t{0}))
        continue;
      ++freed;
      base::store(&l->state, uint32_t{kFree});
      continue;
    }
    ++freed;
    const Entry* entry = entry_at(l->entry);
    Bucket& bucket = bucket_of(entry->device, entry->inode);
    if (take(bucket.lock) == Taken::kNot) continue;
    if (base::load(&l->state) != kFree && l->holder == holder) unlink_lease(bucket, l);
    release(bucket.lock);
  }
  return freed;
}

// A process that ends with files open leaves their leases: they go when somebody opens the file
// again, or here when the table fills. A look at all of them, hence one a second at most.
uint32_t take_lease_of_any_file() {
  static constinit uint64_t next_look = 0;
  if (are_leases_low() && now_ns() >= base::load(&next_look)) {
    base::store(&next_look, now_ns() + 50 * kStepNs);
    release_all_of([](Identity who, void*) { return !alive(who); }, nullptr, Held::kKept);
  }
  return take_lease();
}

Lease* new_lease(const Asking& asking) {
  const bool empty = (asking.access & kEmpty) != 0,
             holds = (asking.access & kLayered) != 0 && !empty;
  const uint32_t member = holds ? become_member() : 0;
  const uint32_t number = holds && member == 0 ? 0 : take_lease_of_any_file();
  if (number == 0) return nullptr;
  Lease* l = lease_at(number);
  l->holder = self();
  l->recall = empty ? kHoldsNothing : kNotRecalled;
  l->access = asking.access & ~uint32_t{kEmpty};
  l->kind = asking.kind;
  l->size = kNoSize;
  l->owner = reinterpret_cast<uint64_t>(asking.owner);
  l->callback = reinterpret_cast<uint64_t>(asking.recall);
  l->member = member;
  return l;
}

}  // namespace

bool join() {
  if (WEIR_LIKELY(base::load(&registry) != nullptr)) return true;
  if (!map_registry(true)) return false;
  enter_users();
  // What this process held before an exec.
  const base::SignalsBlocked blocked;
  release_all_of([](Identity who, void*) { return who == self(); }, nullptr, Held::kDrained);
  return true;
}

bool any() {
  const Registry* r = base::load_relaxed(&registry);
  return r != nullptr && base::load_relaxed(&r->live_leases) != 0;
}

bool any_sizes() {
  const Registry* r = base::load_relaxed(&registry);
  return r != nullptr && base::load_relaxed(&r->live_sizes) != 0;
}

void on_dead_holder(void (*ask_for_help)()) { help = ask_for_help; }

Verdict open(const Asking& asking, Lease** lease) {
  *lease = nullptr;
  if (!join()) return Verdict::kFull;
  const base::SignalsBlocked blocked;
  Lease* own = new_lease(asking);
  if (own == nullptr) return Verdict::kFull;
  Bucket& bucket = bucket_of(asking.device, asking.inode);
  const bool locked = take(bucket.lock) != Taken::kNot;
  uint32_t number = locked ? find_locked(bucket, asking.device, asking.inode) : 0;
  if (locked && number == 0) number = make_entry(bucket, asking.device, asking.inode);
  if (number == 0) {
    if (locked) release(bucket.lock);
    base::store(reinterpret_cast<uint64_t*>(&own->holder), uint64_t{0});
    base::store(&own->state, uint32_t{kFree});
    return Verdict::kFull;
  }
  Entry* entry = entry_at(number);
  base::fetch_add(&registry->live_leases, 1u);
  link_lease(number, own);
  if ((asking.access & kWrites) != 0) base::fetch_add(&registry->writes_epoch, uint64_t{1});
  Waiting waiting{bucket};
  wait_for_dead(waiting, entry, own);
  if (waiting.lost) {
    make_plain_unlocked(own, ~uint32_t{kLayered});
  } else if (entry->contended != 0 || conflicts(entry)) {
    if (lease_at(entry->first) == own && own->next == 0) {
      entry->contended = 0;  // the others were dead
    } else {
      entry->contended = 1;
      make_plain(entry, own);
      while (waiting.must_wait(entry, own) && waiting.pause(entry)) {}
    }
  }
  const bool granted = (own->access & kLayered) != 0;
  if (!waiting.lost) release(bucket.lock);
  *lease = own;
  return granted ? Verdict::kGranted : Verdict::kPlain;
}

void leave(Lease* lease) {
  if (lease == nullptr || !is_own(lease)) return;
  const base::SignalsBlocked blocked;
  withdraw_size(lease);
  Entry* entry = entry_at(lease->entry);
  Bucket& bucket = bucket_of(entry->device, entry->inode);
  if (take(bucket.lock) == Taken::kNot) {
    make_plain_unlocked(lease, ~uint32_t{kLayered});
  } else {
    make_plain(entry, lease);
    release(bucket.lock);
  }
  base::fetch_add(&entry->left, 1u);
  wake(&entry->left);
}

void close(Lease* lease) {
  if (lease == nullptr || !is_own(lease)) return;
  const base::SignalsBlocked blocked;
  base::store(&lease->state, uint32_t{kClosing});
  wait_until_unserved(lease);
  const Entry* entry = entry_at(lease->entry);
  Bucket& bucket = bucket_of(entry->device, entry->inode);
  if (take(bucket.lock) == Taken::kNot) {  // it stays until this process ends, in nobody's way
    make_plain_unlocked(lease, 0);
    return;
  }
  unlink_lease(bucket, lease);
  release(bucket.lock);
}

bool recall(uint64_t device, uint64_t inode, Lease* except) {
  if (!any()) return false;
  const base::SignalsBlocked blocked;
  Bucket& bucket = bucket_of(device, inode);
  bool called = false;
  if (take(bucket.lock) == Taken::kNot) return false;
  Waiting waiting{bucket};
  for (;;) {
    const uint32_t number = find_locked(bucket, device, inode);
    if (number == 0 || !waiting.must_wait(entry_at(number), except)) break;
    called = true;
    if (!waiting.pause(entry_at(number))) break;
  }
  if (!waiting.lost) release(bucket.lock);
  return called;
}

void publish_size(Lease* lease, uint64_t bytes) {
  if (WEIR_UNLIKELY(lease == nullptr)) return;
  if (WEIR_UNLIKELY(base::load_relaxed(&lease->size) == kNoSize))
    base::fetch_add(&registry->live_sizes, 1u);
  base::exchange(&lease->size, bytes);  // before the look at the entry's
  Entry* entry = entry_at(lease->entry);
  if ((lease->access & kShares) == 0) return base::store(&entry->size, bytes);
  uint64_t now = base::load(&entry->size);
  while ((now == kNoSize || now < bytes) && !base::compare_exchange(&entry->size, &now, bytes)) {}
}

void withdraw_size(Lease* lease) {
  if (lease == nullptr || base::load(&lease->size) == kNoSize) return;
  const base::SignalsBlocked blocked;
  Entry* entry = entry_at(lease->entry);
  Bucket& bucket = bucket_of(entry->device, entry->inode);
  if (take(bucket.lock) == Taken::kNot) return forget_size_unlocked(lease);
  forget_size(entry, lease);
  release(bucket.lock);
}

bool size_of(uint64_t device, uint64_t inode, uint64_t* bytes) {
  if (!any_sizes()) return false;
  const Entry* entry = find(device, inode);
  if (entry == nullptr) return false;
  const uint64_t size = base::load(&entry->size);
  // It may have become another file's while it was read.
  if (size == kNoSize || entry->device != device || entry->inode != inode) return false;
  *bytes = size;
  return true;
}

uint64_t change_count(uint64_t device, uint64_t inode) {
  const Entry* entry = any() ? find(device, inode) : nullptr;
  return entry != nullptr ? base::load(&entry->changes) : 0;
}

void changed(uint64_t device, uint64_t inode) {
  Entry* entry = any() ? find(device, inode) : nullptr;
  if (entry != nullptr) base::fetch_add(&entry->changes, uint64_t{1});
}

void names_changed() {
  if (base::load_relaxed(&registry) != nullptr)
    base::fetch_add(&registry->names_epoch, uint64_t{1});
}

uint64_t names_epoch() {
  const Registry* r = base::load_relaxed(&registry);
  return r != nullptr ? base::load(&r->names_epoch) : 0;
}

uint64_t writes_epoch() {
  const Registry* r = base::load_relaxed(&registry);
  return r != nullptr ? base::load(&r->writes_epoch) : 0;
}

void agree_bypass(uint64_t device) {
  Registry* r = base::load_relaxed(&registry);
  if (r == nullptr) return;
  for (uint64_t& place : r->bypass) {
    uint64_t found = base::load_relaxed(&place);
    if (found == device ||
        (found == 0 && (base::compare_exchange(&place, &found, device) || found == device)))
      return;
  }
}

bool agreed_bypass(uint64_t device) {
  const Registry* r = base::load_relaxed(&registry);
  if (r == nullptr || device == 0) return false;
  for (const uint64_t& place : r->bypass) {
    if (base::load_relaxed(&place) == device) return true;
  }
  return false;
}

namespace {

// of(entry) with right counts, under the lock; 0 where the file has no entry, `unknown` where the
// lock cannot be had.
template <typename Of>
uint32_t look_up(uint64_t device, uint64_t inode, uint32_t unknown, Of of) {
  if (!any()) return 0;
  const base::SignalsBlocked blocked;
  Bucket& bucket = bucket_of(device, inode);
  if (take(bucket.lock) == Taken::kNot) return unknown;
  uint32_t found = 0;
  if (const uint32_t number = find_locked(bucket, device, inode); number != 0) {
    settle(entry_at(number));
    found = of(*entry_at(number));
  }
  release(bucket.lock);
  return found;
}

}  // namespace

uint32_t writers(uint64_t device, uint64_t inode) {
  return look_up(device, inode, kLeases, [](const Entry& e) { return e.writers; });
}

uint32_t kind_of_sharers(uint64_t device, uint64_t inode) {
  return look_up(device, inode, 0, [](const Entry& e) {
    return e.sharing != 0 && e.sharing == e.layered ? e.shared_kind : 0;
  });
}

bool has_others(const Lease* lease) {
  if (lease == nullptr) return false;
  const Entry* entry = entry_at(lease->entry);
  return base::load(&entry->leases) > 1 || base::load(&entry->doubt) != 0;
}

void forked_leases() {
  forget_membership();
  if (base::load(&registry) != nullptr) enter_users();
}

bool leave_last() {
  Registry* r = base::load(&registry);
  if (r == nullptr || base::sealed()) return false;
  const uint32_t own = own_user(), mine = own >> kPidBits;
  const uint32_t n = base::load(&r->most_users);
  for (uint32_t i = 0; i < n && i < kUsers; ++i) {
    uint32_t pid = own;
    base::compare_exchange(&r->users[i], &pid, 0u);
  }
  for (uint32_t i = 0; i < n && i < kUsers; ++i) {
    uint32_t pid = base::load(&r->users[i]);
    if (pid == 0) continue;
    if (pid >> kPidBits != mine || runs(pid & ((1u << kPidBits) - 1))) return false;
    base::compare_exchange(&r->users[i], &pid, 0u);  // it was killed
  }
  return n <= kUsers;
}

void look_on() {
  if (base::load(&registry) == nullptr) map_registry(false);
}

bool may_be_used_elsewhere() {
  look_on();
  return has_other_namespaces() && !sees_all_processes();
}

uint32_t release_dead_if(bool (*may)(Identity, void*), void* with) {
  if (base::load(&registry) == nullptr && !map_registry(false)) return 0;
  const base::SignalsBlocked blocked;
  struct Both {
    bool (*may)(Identity, void*);
    void* with;
  } both{may, with};
  return release_all_of(
      [](Identity who, void* b) {
        return !alive(who) && static_cast<Both*>(b)->may(who, static_cast<Both*>(b)->with);
      },
      &both, Held::kDrained);
}

uint32_t release_dead(uint32_t pid, uint32_t start) {
  Identity dead{pid, start};
  return release_dead_if(
      [](Identity who, void* with) { return who == *static_cast<Identity*>(with); }, &dead);
}

}  // namespace weir::node
