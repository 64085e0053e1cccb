// SPDX-License-Identifier: Apache-2.0
#include "node/table.h"

#include <errno.h>
#include <sys/file.h>

#include "base/text.h"
#include "node/place.h"
#include "os/syscall.h"

namespace weir::node {

constinit Registry* registry = nullptr;

namespace {

bool path_of(char* to, size_t size) {
  const char* where = folder();
  if (where == nullptr) return false;
  base::Writer path(to, size);
  path.add(where).add("/registry.").add_number(kRegistryVersion);
  return !path.cut();
}

constexpr uint64_t kTries = 100000;  // of a reader whose chain keeps changing under it

// Backs the next leases or entries with memory: a store to what is not backed could be a SIGBUS.
bool grow(uint32_t* backed, uint32_t most, uint64_t at, uint64_t each) {
  char path[kPathBytes + 16];
  if (os::sealed() || !path_of(path, sizeof path)) return false;
  if (take(registry->growing) == Taken::kNot) return false;
  const uint32_t now = base::load(backed);
  bool grown = false;
  if (now < most) {
    const os::HoldsDescriptor held;
    const long fd = os::open_at(AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (!os::failed(fd)) {
      grown = os::allocate(static_cast<int>(fd), at + now * each, kGrow * each) == 0;
      os::close_fd(static_cast<int>(fd));
    }
    if (grown) base::store(backed, now + kGrow);
  }
  release(registry->growing);
  return grown;
}

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
  if (base::load_relaxed(&lease_at(number)->state) != kFree || !base::compare_exchange(&lease_at(number)->state, &free, uint32_t{kTaken})) return false;
  uint32_t most = base::load(&registry->most_leases);
  while (most < number && !base::compare_exchange(&registry->most_leases, &most, number)) {}
  return true;
}

bool take_this_entry(uint32_t number) {
  uint32_t free = 0;
  return base::load_relaxed(&entry_at(number)->used) == 0 && base::compare_exchange(&entry_at(number)->used, &free, 1u);
}

bool is_there_still(int folder_fd) {
  os::Identity is;
  struct stat about;
  if (!os::identify(folder_fd, &is)) return false;
  if (os::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(folder()), reinterpret_cast<long>(&about), AT_SYMLINK_NOFOLLOW) != 0) return false;
  return is == os::Identity{static_cast<uint64_t>(about.st_dev), static_cast<uint64_t>(about.st_ino)};
}

// A descriptor that keeps the folder from being removed while it is open (helper/clean.h); made anew if it has just been. -1: none.
long enter_folder() {
  for (int tries = 0; tries < 64; ++tries) {
    const long fd = os::open_at(AT_FDCWD, folder(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd == -ENOENT && renew_folder()) continue;
    if (os::failed(fd)) return -1;
    os::system_call(SYS_flock, fd, LOCK_SH);
    if (is_there_still(static_cast<int>(fd))) return fd;
    os::close_fd(static_cast<int>(fd));
  }
  return -1;
}

bool map_file(const char* path, bool make);

}  // namespace

bool map_registry(bool make) {
  char path[kPathBytes + 16];
  if (os::sealed() || !path_of(path, sizeof path)) return false;
  const os::SignalsBlocked blocked;
  const os::HoldsDescriptor held;
  const long inside = make ? enter_folder() : -1;
  if (make && inside < 0) return false;
  const bool mapped = map_file(path, make);
  if (make) os::close_fd(static_cast<int>(inside));
  return mapped;
}

namespace {

bool map_file(const char* path, bool make) {
  const long fd = os::open_at(AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0600);
  if (os::failed(fd)) return false;
  long at = -1;
  if (!make || (os::allocate(static_cast<int>(fd), 0, kLeasesAt) == 0 &&
                os::resize(static_cast<int>(fd), kRegistryBytes) == 0)) {
    struct stat about;
    if (os::system_call(SYS_fstat, fd, reinterpret_cast<long>(&about)) == 0 && static_cast<uint64_t>(about.st_size) == kRegistryBytes) {
      at = os::map(kRegistryBytes, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd));
    }
  }
  os::close_fd(static_cast<int>(fd));
  if (os::failed(at)) return false;
  // All zeros is an empty registry, so that nobody need be the first.
  auto* mapped = reinterpret_cast<Registry*>(at);
  uint64_t fresh = 0;
  Registry* none = nullptr;
  if ((base::compare_exchange(&mapped->magic, &fresh, kRegistryMagic) || fresh == kRegistryMagic) && base::compare_exchange(&registry, &none, mapped)) return true;
  os::unmap(mapped, kRegistryBytes);
  return base::load(&registry) != nullptr;
}

}  // namespace

uint32_t take_lease() {
  for (;;) {
    const uint32_t found = take_from(&registry->backed_leases, &registry->lease_hint, take_this_lease);
    if (found != 0 || !grow(&registry->backed_leases, kLeases, kLeasesAt, sizeof(Lease))) return found;
  }
}

uint32_t take_entry() {
  for (;;) {
    const uint32_t found = take_from(&registry->backed_entries, &registry->entry_hint, take_this_entry);
    if (found != 0 || !grow(&registry->backed_entries, kEntries, kEntriesAt, sizeof(Entry))) return found;
  }
}

uint32_t find_locked(const Bucket& bucket, uint64_t device, uint64_t inode) {
  for (uint32_t at = base::load(&bucket.first), n = 0; at != 0 && n < kEntries; at = base::load(&entry_at(at)->next), ++n) {
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

void renew_size(Entry* entry) {
  uint64_t most = kNoSize;
  for (uint32_t at = entry->first, n = 0; at != 0 && n < kLeases; at = lease_at(at)->next, ++n) {
    const uint64_t size = base::load(&lease_at(at)->size);
    if (size != kNoSize && (most == kNoSize || size > most)) most = size;
  }
  base::store(&entry->size, most);
}

// In each list one store takes it out; a holder killed before it is found by the next search for the dead.
void unlink_lease(Bucket& bucket, Lease* lease) {
  const uint32_t number = number_of(lease), its_entry = lease->entry;
  Entry* entry = entry_at(its_entry);
  uint32_t* link = &entry->first;
  // Bounded, as everything that follows memory which others write.
  for (uint32_t n = 0; *link != 0 && *link != number && n < kLeases; ++n) link = &lease_at(*link)->next;
  if (*link == number) base::store(link, lease->next);
  if (base::load(&lease->size) != kNoSize) base::fetch_add(&registry->live_sizes, ~0u);
  if ((lease->access & kWrites) != 0) base::fetch_add(&registry->writes_epoch, uint64_t{1});
  renew_size(entry);
  base::fetch_add(&entry->left, 1u);
  if (entry->first == 0) {
    base::fetch_add(&bucket.version, 1u);
    uint32_t* chain = &bucket.first;
    for (uint32_t n = 0; *chain != 0 && *chain != its_entry && n < kEntries; ++n) chain = &entry_at(*chain)->next;
    if (*chain == its_entry) base::store(chain, entry->next);
    base::fetch_add(&bucket.version, 1u);
    base::store(&entry->used, 0u);
  }
  base::store(reinterpret_cast<uint64_t*>(&lease->holder), uint64_t{0});
  lease->entry = 0;
  base::store(&lease->state, uint32_t{kFree});
  base::fetch_add(&registry->live_leases, ~0u);
  wake(&entry->left);
}

}  // namespace weir::node
