// SPDX-License-Identifier: Apache-2.0
// The leases of one file: a list linked both ways, and counts of its members, so that opening and
// closing the file cost the same with any number of openings. Whoever changes them marks the entry
// first: a holder of the bucket's lock that is killed in between leaves the mark, and the next one
// counts again. All under the bucket's lock, except where it says so.
#include "layers/machinery/node/table.h"
#include "base/syscall.h"

namespace weir::node {
namespace {

constexpr uint32_t kLayeredShares = kLayered | kShares;

void doubt(Entry* entry, uint32_t why) { __atomic_fetch_or(&entry->doubt, why, __ATOMIC_SEQ_CST); }

// While the entry's list or counts change. Begins with right ones.
class Change {
 public:
  explicit Change(Entry* entry) : entry_(entry) {
    settle(entry);
    doubt(entry, kBeingChanged);
  }
  ~Change() { __atomic_fetch_and(&entry_->doubt, ~uint32_t{kBeingChanged}, __ATOMIC_SEQ_CST); }
  Change(const Change&) = delete;

 private:
  Entry* entry_;
};

bool shares(const Entry* entry, uint32_t access, uint32_t kind) {
  return (access & kLayeredShares) == kLayeredShares && kind == entry->shared_kind;
}

void count_in(Entry* entry, uint32_t access, uint32_t kind) {
  if (entry->sharing == 0 && (access & kLayeredShares) == kLayeredShares) entry->shared_kind = kind;
  entry->leases += 1;
  entry->writers += (access & kWrites) != 0;
  entry->layered += (access & kLayered) != 0;
  entry->sharing += shares(entry, access, kind);
}

void count_out(Entry* entry, uint32_t access, uint32_t kind) {
  const bool shared = shares(entry, access, kind);
  entry->leases -= 1;
  entry->writers -= (access & kWrites) != 0;
  entry->layered -= (access & kLayered) != 0;
  entry->sharing -= shared;
  if (shared && entry->sharing == 0 && entry->layered != 0)
    doubt(entry, kUncounted);  // there may be those of another kind
}

// Backward links, then counts. Of stacks that share, the kind of the oldest lease is counted.
void count_again(Entry* entry) {
  uint32_t last = 0, n = 0;
  for (uint32_t at = entry->first; at != 0 && n < kLeases; at = lease_at(at)->next, ++n) {
    lease_at(at)->previous = last;
    last = at;
  }
  entry->leases = entry->writers = entry->layered = entry->sharing = 0;
  for (uint32_t at = last; at != 0 && n != 0; at = lease_at(at)->previous, --n) {
    count_in(entry, base::load(&lease_at(at)->access), lease_at(at)->kind);
  }
}

bool is_listed(const Entry* entry, const Lease* lease) {
  const uint32_t number = number_of(lease);
  if (entry->first == number) return true;
  if (lease->previous == 0) return false;
  const Lease* before = lease_at(lease->previous);
  return before->next == number && before->entry == lease->entry;
}

uint64_t longest(const Entry* entry, uint64_t enough) {
  uint64_t most = kNoSize;
  for (uint32_t at = entry->first, n = 0; at != 0 && n < kLeases; at = lease_at(at)->next, ++n) {
    const uint64_t size = base::load(&lease_at(at)->size);
    if (size == kNoSize) continue;
    if (size == enough) return size;
    if (most == kNoSize || size > most) most = size;
  }
  return most;
}

// After a lease that had published `gone` has none any more. Others publish without the lock: their
// store of the lease's size comes before they look at the entry's, and here the entry's comes
// before the last look at theirs.
void renew_size(Entry* entry, uint64_t gone) {
  uint64_t reported = base::load(&entry->size);
  if (reported != kNoSize && gone < reported) return;
  uint64_t most = longest(entry, reported);
  while (most != reported) {
    if (base::compare_exchange(&entry->size, &reported, most)) reported = most;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    most = longest(entry, reported);
  }
}

void remove_entry(Bucket& bucket, uint32_t number) {
  Entry* entry = entry_at(number);
  base::fetch_add(&bucket.version, 1u);
  uint32_t* chain = &bucket.first;
  for (uint32_t n = 0; *chain != 0 && *chain != number && n < kEntries; ++n)
    chain = &entry_at(*chain)->next;
  const bool listed = *chain == number;
  if (listed) base::store(chain, entry->next);
  base::fetch_add(&bucket.version, 1u);
  base::store(&entry->used, 0u);
  if (listed)
    base::fetch_add(&registry->live_entries,
                    ~0u);  // once, whoever is killed where: rather too many than too few
}

// The lease's, once: live_sizes may become too many when somebody is killed here, and never too
// few.
uint64_t take_size(Lease* lease) {
  const uint64_t size = base::exchange(&lease->size, kNoSize);
  if (size != kNoSize) base::fetch_add(&registry->live_sizes, ~0u);
  return size;
}

}  // namespace

void settle(Entry* entry) {
  if (WEIR_LIKELY(base::load(&entry->doubt) == 0)) return;
  __atomic_exchange_n(&entry->doubt, uint32_t{kBeingChanged}, __ATOMIC_SEQ_CST);
  count_again(entry);
  base::store(&entry->size, longest(entry, kNoSize - 1));
  __atomic_fetch_and(&entry->doubt, ~uint32_t{kBeingChanged}, __ATOMIC_SEQ_CST);
}

uint32_t make_entry(Bucket& bucket, uint64_t device, uint64_t inode) {
  const uint32_t number = take_entry();
  if (number == 0) return 0;
  Entry* e = entry_at(number);
  base::fetch_add(&registry->live_entries, 1u);
  e->device = device;
  e->inode = inode;
  e->first = e->contended = e->doubt = 0;
  e->leases = e->writers = e->layered = e->sharing = e->shared_kind = 0;
  e->changes = 0;
  e->size = kNoSize;
  e->next = bucket.first;
  base::fetch_add(&bucket.version, 1u);
  base::store(&bucket.first, number);
  base::fetch_add(&bucket.version, 1u);
  return number;
}

void link_lease(uint32_t number, Lease* lease) {
  Entry* entry = entry_at(number);
  const Change change(entry);
  lease->entry = number;
  lease->next = entry->first;
  lease->previous = 0;
  if (lease->next != 0) lease_at(lease->next)->previous = number_of(lease);
  base::store(&lease->state, uint32_t{kLinked});
  base::store(&entry->first, number_of(lease));
  count_in(entry, base::load(&lease->access), lease->kind);
}

// In each list one store takes it out; a holder killed before it is found by the next search for
// the dead.
void unlink_lease(Bucket& bucket, Lease* lease) {
  const uint32_t its_entry = lease->entry;
  Entry* entry = entry_at(its_entry);
  {
    const Change change(entry);
    if (is_listed(entry, lease)) {
      if (lease->next != 0) lease_at(lease->next)->previous = lease->previous;
      base::store(lease->previous != 0 ? &lease_at(lease->previous)->next : &entry->first,
                  lease->next);
      count_out(entry, base::load(&lease->access), lease->kind);
    }
    if ((lease->access & kWrites) != 0) base::fetch_add(&registry->writes_epoch, uint64_t{1});
    if (const uint64_t size = take_size(lease); size != kNoSize) renew_size(entry, size);
  }
  base::fetch_add(&entry->left, 1u);
  if (entry->first == 0) remove_entry(bucket, its_entry);
  base::store(reinterpret_cast<uint64_t*>(&lease->holder), uint64_t{0});
  lease->entry = 0;
  base::store(&lease->state, uint32_t{kFree});
  base::fetch_add(&registry->live_leases, ~0u);
  wake(&entry->left);
}

void make_plain(Entry* entry, Lease* lease) {
  const Change change(entry);
  const uint32_t access = base::load(&lease->access);
  if ((access & kLayered) == 0) return;
  count_out(entry, access, lease->kind);
  base::store(&lease->access, access & ~uint32_t{kLayered});
  count_in(entry, access & ~uint32_t{kLayered}, lease->kind);
}

void make_plain_unlocked(Lease* lease, uint32_t access_kept) {
  base::store(&lease->access, lease->access & access_kept);
  doubt(entry_at(lease->entry), kUncounted);
}

void forget_size(Entry* entry, Lease* lease) {
  const Change change(entry);
  if (const uint64_t size = take_size(lease); size != kNoSize) renew_size(entry, size);
}

void forget_size_unlocked(Lease* lease) {
  take_size(lease);
  doubt(entry_at(lease->entry), kUncounted);
}

}  // namespace weir::node
