// SPDX-License-Identifier: Apache-2.0
// The registry as it lies in shared memory. Everything that a reader without a lock follows is
// published by one store; the version of a bucket tells it that the chain it walked was changed
// meanwhile.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/round.h"
#include "layers/machinery/node/lock.h"
#include "layers/machinery/node/registry.h"

namespace weir::node {

inline constexpr uint64_t kRegistryMagic = 0x3167657272696577;  // "weirreg1"
inline constexpr uint32_t kLeases = 1u << 16, kEntries = 1u << 16, kBuckets = 1u << 12,
                          kMembers = 1u << 12;
// Leases, or entries, that are backed with memory at a time.
inline constexpr uint32_t kGrow = 1024;
inline constexpr uint64_t kNoSize = ~uint64_t{0};

enum LeaseState : uint32_t { kFree, kTaken, kLinked, kClosing };
// From kHoldsNothing either the holder goes on to kNotRecalled or another to kTakenAway: whoever
// changes the word first.
enum Recall : uint32_t { kNotRecalled, kRecalled, kBeingServed, kHoldsNothing, kTakenAway };

struct Lease {
  uint32_t state, recall;
  alignas(8) Identity holder;  // 0 while it is free
  uint32_t access, kind;
  uint32_t next, entry;  // numbers from 1; 0: none
  uint64_t size;         // published, or kNoSize
  uint64_t owner, callback;  // in the holder's memory
  uint32_t member, previous;
};
static_assert(sizeof(Lease) == 64);

struct Entry {
  uint64_t device, inode;
  uint32_t next, first;  // entry in the bucket, lease
  uint32_t used, contended;
  uint64_t size;     // as programs must see it, or kNoSize
  uint64_t changes;
  uint32_t left;     // futex: counts leases that became plain or went
  uint32_t doubt;    // Doubt; 0: what follows, and `previous` of its leases, is as the list is
  uint32_t leases, writers, layered;
  uint32_t sharing, shared_kind;  // of the layered: those that share a stack of this kind
};
static_assert(sizeof(Entry) == 80);

// Why an entry's counts may be wrong: whoever locks its bucket next counts again.
enum Doubt : uint32_t {
  kBeingChanged = 1,  // by the holder of the bucket's lock, or one that was killed while it did
  kUncounted = 2,     // a lease has changed without the lock
};

struct Bucket {
  Lock lock;
  uint32_t version, first;
};

struct Member {
  Identity who;
  uint32_t calls;  // futex: one of its leases is recalled
  uint32_t pulse;  // robust futex of the thread that serves recalls: the kernel marks it when the
                   // process ends; 0: not yet known
};

inline constexpr int kBypassed = 16;
inline constexpr uint32_t kUsers = 4096;
inline constexpr uint32_t kNamespaces = 64;
inline constexpr uint32_t kPidBits = 22;  // of a user; above them 1 + the place of its namespace

struct Registry {
  uint64_t magic;
  uint32_t live_leases, live_sizes, live_entries;
  Lock growing;
  uint32_t backed_leases, backed_entries;
  uint32_t lease_hint, entry_hint, most_leases;  // the last: none beyond it was ever taken
  uint64_t names_epoch, writes_epoch;
  uint64_t bypass[kBypassed];  // devices
  Bucket buckets[kBuckets];
  Member members[kMembers];
  uint32_t users[kUsers];  // processes that have this mapped, in no order; one that was killed
                           // stays until somebody looks
  uint32_t most_users;     // none beyond it was ever taken
  uint32_t
      namespaces[kNamespaces];  // inodes of the PID namespaces whose processes have had this mapped
};

// In the file's name: processes of another version have a registry of their own. A new layout is a
// new version.
inline constexpr uint32_t kRegistryVersion = 8;
static_assert(sizeof(Registry) == 131528, "another layout: give it another kRegistryVersion");

inline constexpr uint64_t kLeasesAt = base::round_up(sizeof(Registry), 4096);
inline constexpr uint64_t kEntriesAt = kLeasesAt + uint64_t{kLeases} * sizeof(Lease);
inline constexpr uint64_t kRegistryBytes = kEntriesAt + uint64_t{kEntries} * sizeof(Entry);

inline Lease* lease_at(uint32_t number) {
  return reinterpret_cast<Lease*>(reinterpret_cast<char*>(registry) + kLeasesAt) + (number - 1);
}
inline Entry* entry_at(uint32_t number) {
  return reinterpret_cast<Entry*>(reinterpret_cast<char*>(registry) + kEntriesAt) + (number - 1);
}
inline uint32_t number_of(const Lease* lease) {
  return static_cast<uint32_t>(lease - lease_at(1)) + 1;
}
inline Bucket& bucket_of(uint64_t device, uint64_t inode) {
  const uint64_t h = (inode ^ device << 32 ^ device) * 0x9e3779b97f4a7c15u;
  return registry->buckets[h >> 52];
}
static_assert(kBuckets == 1u << 12);

// Maps the file; made when it is not there and may be.
bool map_registry(bool make);
// So many are in use that the next free one may be far, or none.
bool are_leases_low();
// A free one, taken; 0 when there is none.
uint32_t take_lease();
uint32_t take_entry();

// Under the bucket's lock.
uint32_t find_locked(const Bucket& bucket, uint64_t device, uint64_t inode);
uint32_t make_entry(Bucket& bucket, uint64_t device, uint64_t inode);
void settle(Entry* entry);  // its counts are right afterwards
void link_lease(uint32_t entry, Lease* lease);
void unlink_lease(Bucket& bucket, Lease* lease);  // and frees it, and its entry with the last one
void make_plain(Entry* entry, Lease* lease);      // it is no layered one any more
void forget_size(Entry* entry, Lease* lease);
// Without the lock, because it could not be had.
void make_plain_unlocked(Lease* lease, uint32_t access_kept);
void forget_size_unlocked(Lease* lease);

// This process among the users; false: no room.
bool enter_users();
// As it stands among them.
uint32_t own_user();
// Whether processes of another PID namespace have been here.
bool has_other_namespaces();

// Without a lock; null: not there.
Entry* find(uint64_t device, uint64_t inode);

// The member's number in the registry, from 1; starts the thread that serves recalls. 0: no more
// room.
uint32_t become_member();
void recall_lease(Lease* lease);
// Of a process of another PID namespace.
Life life_of_member(Identity who);
// Takes the file from a holder that holds nothing. False: it holds something, and has to be
// recalled. Under the bucket's lock.
bool take_away(Lease* lease);
// Until no callback is under way for it.
void wait_until_unserved(Lease* lease);
void forget_membership();

}  // namespace weir::node
