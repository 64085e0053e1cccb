// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/node/table.h"

#include <errno.h>
#include <sys/file.h>

#include "base/text.h"
#include "layers/machinery/node/place.h"
#include "layers/machinery/node/private.h"
#include "base/syscall.h"

namespace weir::node {

constinit Registry* registry = nullptr;

namespace {

constinit base::Identity registry_file{};

struct Name {
  char text[24];
  Name() { base::Writer(text, sizeof text).add("registry.").add_number(kRegistryVersion); }
};

constexpr uint64_t kTries = 100000;  // of a reader whose chain keeps changing under it

// Backs the next leases or entries with memory: a store to what is not backed could be a SIGBUS.
bool grow(uint32_t* backed, uint32_t most, uint64_t at, uint64_t each) {
  if (base::sealed()) return false;
  if (take(registry->growing) == Taken::kNot) return false;
  const uint32_t now = base::load(backed);
  bool grown = false;
  if (now < most) {
    const base::HoldsDescriptor held;
    const long fd = open_again(Name().text, registry_file);
    if (!base::failed(fd)) {
      grown = base::allocate(static_cast<int>(fd), at + now * each, kGrow * each) == 0;
      base::close_fd(static_cast<int>(fd));
    }
    if (grown) base::store(backed, now + kGrow);
  }
  release(registry->growing);
  return grown;
}

// Twice as many as are in use: the next free one is near then, wherever the last was found.
bool is_filled(uint32_t used, uint32_t backed) { return used * 2 >= backed; }

template <typename Take>
uint32_t take_from(uint32_t* backed, uint32_t* hint, Take take) {
  const uint32_t n = base::load(backed), from = base::load_relaxed(hint);
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t number = (from + i) % n + 1;
    if (!take(number)) continue;
    base::store_relaxed(hint, number % n);
    return number;
  }
  return 0;
}

bool take_this_lease(uint32_t number) {
  uint32_t free = kFree;
  if (base::load_relaxed(&lease_at(number)->state) != kFree ||
      !base::compare_exchange(&lease_at(number)->state, &free, uint32_t{kTaken}))
    return false;
  uint32_t most = base::load(&registry->most_leases);
  while (most < number && !base::compare_exchange(&registry->most_leases, &most, number)) {}
  return true;
}

bool take_this_entry(uint32_t number) {
  uint32_t free = 0;
  return base::load_relaxed(&entry_at(number)->used) == 0 &&
         base::compare_exchange(&entry_at(number)->used, &free, 1u);
}

bool is_there_still(int directory_fd) {
  base::Identity is;
  struct stat about;
  if (!base::identify(directory_fd, &is)) return false;
  if (base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(own_directory()),
                        reinterpret_cast<long>(&about), AT_SYMLINK_NOFOLLOW) != 0)
    return false;
  return is ==
         base::Identity{static_cast<uint64_t>(about.st_dev), static_cast<uint64_t>(about.st_ino)};
}

// A descriptor that keeps the directory from being removed while it is open
// (layers/writeback/daemon/clean.h); made anew if it has just been. -1: none.
long enter_directory() {
  for (int tries = 0; tries < 64; ++tries) {
    const long fd = open_own_directory();
    if (base::failed(fd)) {
      if (!renew_directory()) return -1;
      continue;
    }
    base::system_call(SYS_flock, fd, LOCK_SH);
    if (is_there_still(static_cast<int>(fd))) return fd;
    base::close_fd(static_cast<int>(fd));
  }
  return -1;
}

bool map_file(bool make);

// 1 + its place; 0: unknown, or no room.
uint32_t place_of_namespace(uint32_t inode) {
  for (uint32_t i = 0; inode != 0 && i < kNamespaces; ++i) {
    uint32_t there = base::load(&registry->namespaces[i]);
    if (there == inode ||
        (there == 0 &&
         (base::compare_exchange(&registry->namespaces[i], &there, inode) || there == inode)))
      return i + 1;
  }
  return 0;
}

}  // namespace

bool has_other_namespaces() {
  const Registry* r = base::load(&registry);
  const auto mine = static_cast<uint32_t>(own_namespace());
  for (uint32_t i = 0; r != nullptr && i < kNamespaces; ++i) {
    const uint32_t there = base::load(&r->namespaces[i]);
    if (there == 0) return false;
    if (there != mine) return true;
  }
  return false;
}

bool map_registry(bool make) {
  if (base::sealed() || own_directory() == nullptr) return false;
  const base::SignalsBlocked blocked;
  const base::HoldsDescriptor held;
  const long inside = make ? enter_directory() : -1;
  if (make && inside < 0) return false;
  const bool mapped = map_file(make);
  if (make) base::close_fd(static_cast<int>(inside));
  return mapped;
}

namespace {

bool map_file(bool make) {
  const long fd = open_inside(Name().text, O_RDWR | (make ? O_CREAT : 0));
  if (base::failed(fd)) return false;
  long at = -1;
  if (!make || (base::allocate(static_cast<int>(fd), 0, kLeasesAt) == 0 &&
                base::resize(static_cast<int>(fd), kRegistryBytes) == 0)) {
    struct stat about;
    if (base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&about)) == 0 &&
        static_cast<uint64_t>(about.st_size) == kRegistryBytes) {
      at = base::map(kRegistryBytes, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd));
      if (base::load(&registry) == nullptr) base::identify(static_cast<int>(fd), &registry_file);
    }
  }
  base::close_fd(static_cast<int>(fd));
  if (base::failed(at)) return false;
  // All zeros is an empty registry, so that nobody need be the first.
  auto* mapped = reinterpret_cast<Registry*>(at);
  uint64_t fresh = 0;
  Registry* none = nullptr;
  if ((base::compare_exchange(&mapped->magic, &fresh, kRegistryMagic) || fresh == kRegistryMagic) &&
      base::compare_exchange(&registry, &none, mapped)) {
    // Before this process takes a lock that others judge by its number.
    place_of_namespace(static_cast<uint32_t>(own_namespace()));
    on_foreign({life_of_member, has_other_namespaces});
    return true;
  }
  base::unmap(mapped, kRegistryBytes);
  return base::load(&registry) != nullptr;
}

}  // namespace

uint32_t own_user() {
  return static_cast<uint32_t>(base::process_id()) |
         place_of_namespace(static_cast<uint32_t>(own_namespace())) << kPidBits;
}

namespace {

bool take_user(uint32_t own) {
  for (uint32_t i = 0; i < kUsers; ++i) {
    uint32_t nobody = 0;
    if (!base::compare_exchange(&registry->users[i], &nobody, own)) continue;
    uint32_t most = base::load(&registry->most_users);
    while (most <= i && !base::compare_exchange(&registry->most_users, &most, i + 1)) {}
    return true;
  }
  return false;
}

// Processes that were killed do not leave. True: there is room now.
bool drop_dead_users() {
  const uint32_t mine = own_user() >> kPidBits;
  bool any = false;
  for (uint32_t& user : registry->users) {
    uint32_t there = base::load(&user);
    if (there == 0 || there >> kPidBits != mine || runs(there & ((1u << kPidBits) - 1))) continue;
    any |= base::compare_exchange(&user, &there, 0u);
  }
  return any;
}

}  // namespace

bool enter_users() {
  const uint32_t own = own_user();
  if (take_user(own) || (drop_dead_users() && take_user(own))) return true;
  base::store(&registry->most_users, kUsers + 1);  // somebody is not among them
  return false;
}

bool are_leases_low() {
  return is_filled(base::load_relaxed(&registry->live_leases),
                   base::load_relaxed(&registry->backed_leases));
}

uint32_t take_lease() {
  Registry* r = registry;
  if (base::load_relaxed(&r->live_leases) >= kLeases) return 0;
  if (are_leases_low() && base::load_relaxed(&r->backed_leases) < kLeases)
    grow(&r->backed_leases, kLeases, kLeasesAt, sizeof(Lease));
  return take_from(&r->backed_leases, &r->lease_hint, take_this_lease);
}

uint32_t take_entry() {
  Registry* r = registry;
  const uint32_t backed = base::load_relaxed(&r->backed_entries);
  if (backed < kEntries && is_filled(base::load_relaxed(&r->live_entries), backed))
    grow(&r->backed_entries, kEntries, kEntriesAt, sizeof(Entry));
  return take_from(&r->backed_entries, &r->entry_hint, take_this_entry);
}

uint32_t find_locked(const Bucket& bucket, uint64_t device, uint64_t inode) {
  for (uint32_t at = base::load(&bucket.first), n = 0; at != 0 && n < kEntries;
       at = base::load(&entry_at(at)->next), ++n) {
    if (entry_at(at)->device == device && entry_at(at)->inode == inode) return at;
  }
  return 0;
}

Entry* find(uint64_t device, uint64_t inode) {
  const Bucket& bucket = bucket_of(device, inode);
  for (uint64_t tries = 0; tries < kTries; ++tries) {
    const uint32_t version = base::load(&bucket.version);
    const uint32_t at = find_locked(bucket, device, inode);
    if (base::load(&bucket.version) == version) return at == 0 ? nullptr : entry_at(at);
  }
  return nullptr;
}

}  // namespace weir::node
