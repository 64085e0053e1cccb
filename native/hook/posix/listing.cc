// SPDX-License-Identifier: Apache-2.0
// Directories are read: entry by entry, or at once. Files that a layer keeps elsewhere come after
// those that the kernel lists.
#include <dirent.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/syscall.h"
#include "base/text.h"
#include "hook/observe.h"
#include "layers/machinery/stack/elsewhere.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;
using weir::trace::thread_log;

namespace {

constexpr size_t kListBytes = 16 << 20;  // of addresses: memory is used as far as names reach
constexpr int kListings = 256;           // open streams; others list what the kernel lists
constexpr uint32_t kHeads = 4096;

// A file that was elsewhere when its directory began to be listed. It may come to its name
// meanwhile: then the kernel lists it, and it is given once all the same.
struct Name {
  uint64_t inode;
  uint32_t next;  // of the same hash; 0: none
  uint16_t length;  // with its zero
  bool seen;
  char text[];
};

struct Listing {
  uint32_t used, at;
  bool ended;
  dirent entry;
  uint32_t heads[kHeads];
  alignas(8) char names[];
};
struct Slot {
  DIR* directory;
  Listing* listing;
};
constinit Slot slots[kListings] = {};

Slot* slot_of(const DIR* directory) {
  for (Slot& slot : slots) {
    if (base::load(&slot.directory) == directory) return &slot;
  }
  return nullptr;
}

uint32_t head_of(const char* name) {
  return static_cast<uint32_t>(base::hash(base::text(name), 3) % kHeads);
}

Name& name_at(Listing& listing, uint32_t at) {
  return *reinterpret_cast<Name*>(listing.names + at - 8);  // 0 is none
}

bool add_name(void* to, const char* name, uint64_t inode) {
  auto& listing = *static_cast<Listing*>(to);
  const size_t length = strlen(name) + 1, bytes = (sizeof(Name) + length + 7) / 8 * 8;
  if (offsetof(Listing, names) + listing.used + bytes > kListBytes) return false;
  const uint32_t at = listing.used + 8, head = head_of(name);
  Name& entry = name_at(listing, at);
  entry.inode = inode;
  entry.next = listing.heads[head];
  entry.length = static_cast<uint16_t>(length);
  memcpy(entry.text, name, length);
  listing.heads[head] = at;
  listing.used += static_cast<uint32_t>(bytes);
  return true;
}

// Null: none, or no memory.
Listing* list(int directory) {
  const long at = base::map(kListBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  if (base::failed(at)) return nullptr;
  auto* const listing = reinterpret_cast<Listing*>(at);
  const base::SignalsBlocked blocked;
  stack::names_elsewhere->list(directory, add_name, listing);
  if (listing->used != 0) return listing;
  base::unmap(listing, kListBytes);
  return nullptr;
}

void give_back(Listing* listing) {
  if (listing != nullptr) base::unmap(listing, kListBytes);
}

void see(Listing& listing, const char* name) {
  for (uint32_t at = listing.heads[head_of(name)]; at != 0; at = name_at(listing, at).next) {
    Name& entry = name_at(listing, at);
    if (strcmp(entry.text, name) == 0) entry.seen = true;
  }
}

dirent* next_of(Listing& listing) {
  while (listing.at < listing.used) {
    const Name& name = name_at(listing, listing.at + 8);
    listing.at += static_cast<uint32_t>((sizeof(Name) + name.length + 7) / 8 * 8);
    if (name.seen) continue;
    listing.entry.d_ino = name.inode;
    listing.entry.d_type = DT_REG;
    listing.entry.d_reclen = static_cast<unsigned short>(
        (offsetof(dirent, d_name) + name.length + 7) / 8 * 8);
    memcpy(listing.entry.d_name, name.text, name.length);
    return &listing.entry;
  }
  return nullptr;
}

void end_listing(DIR* directory) {
  Slot* const slot = slot_of(directory);
  if (slot == nullptr || directory == nullptr) return;
  Listing* const listing = slot->listing;
  slot->listing = nullptr;
  base::store(&slot->directory, static_cast<DIR*>(nullptr));
  give_back(listing);
}

Slot* begin_listing(DIR* directory) {
  for (Slot& slot : slots) {
    DIR* none = nullptr;
    if (!base::compare_exchange(&slot.directory, &none, directory)) continue;
    slot.listing = list(dirfd(directory));
    return &slot;
  }
  return nullptr;
}

// real() gives the kernel's next entry, null at the end.
template <typename Real>
dirent* next_entry(DIR* directory, Real real) {
  const int before = errno;
  Slot* slot = slot_of(directory);
  if (slot == nullptr) slot = begin_listing(directory);
  errno = before;
  auto* entry = static_cast<dirent*>(real());
  while (entry != nullptr && stack::names_elsewhere->hides(entry->d_name))
    entry = static_cast<dirent*>(real());
  if (slot == nullptr || slot->listing == nullptr || errno != before) return entry;
  Listing& listing = *slot->listing;
  if (entry != nullptr) {
    if (listing.ended) listing.ended = false, listing.at = 0;  // rewound
    see(listing, entry->d_name);
    return entry;
  }
  listing.ended = true;
  return next_of(listing);
}

using Filter = int (*)(const void*);
using Order = int (*)(const void*, const void*);

// What scandir gives: an array of entries, each in memory of its own. The new number of entries.
int add_entries(Listing* listing, dirent*** entries, int count, Filter filter, Order order) {
  const int before = count;
  for (int i = 0; i < count; ++i) see(*listing, (*entries)[i]->d_name);
  while (const dirent* const entry = next_of(*listing)) {
    if (filter != nullptr && filter(entry) == 0) continue;
    auto** const longer = static_cast<dirent**>(
        realloc(*entries, (static_cast<size_t>(count) + 1) * sizeof(dirent*)));
    auto* const copy = static_cast<dirent*>(malloc(entry->d_reclen));
    if (longer != nullptr) *entries = longer;
    if (longer == nullptr || copy == nullptr) {
      free(copy);
      break;
    }
    memcpy(copy, entry, entry->d_reclen);
    longer[count++] = copy;
  }
  if (order != nullptr && count > before)
    qsort(*entries, static_cast<size_t>(count), sizeof(dirent*), order);
  return count;
}

// What is elsewhere in a directory by name.
Listing* list(int directory, const char* path) {
  if (WEIR_LIKELY(!stack::any_elsewhere())) return nullptr;
  const base::HoldsDescriptor held;
  const long fd = base::open_at(directory, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (base::failed(fd)) return nullptr;
  Listing* const listing = list(static_cast<int>(fd));
  base::close_fd(static_cast<int>(fd));
  return listing;
}

int leave_out_hidden(dirent** entries, int count) {
  int left = 0;
  for (int i = 0; i < count; ++i) {
    if (stack::names_elsewhere->hides(entries[i]->d_name)) free(entries[i]);
    else entries[left++] = entries[i];
  }
  return left;
}

template <typename Real>
int scanning_all(int directory, const char* path, void* entries, Filter filter, Order order,
                 Real real) {
  Listing* const listing = list(directory, path);
  int count = real();
  if (WEIR_UNLIKELY(stack::any_elsewhere()) && count > 0)
    count = leave_out_hidden(*static_cast<dirent***>(entries), count);
  if (listing != nullptr && count >= 0)
    count = add_entries(listing, static_cast<dirent***>(entries), count, filter, order);
  give_back(listing);
  return count;
}

}  // namespace

WEIR_HOOK(DIR*, opendir, const char* path) {
  DIR* directory = nullptr;
  opening(Op::kOpendir, AT_FDCWD, path, O_RDONLY, [&] {
    directory = WEIR_REAL(opendir)(path);
    return directory != nullptr ? dirfd(directory) : -1;
  });
  return directory;
}

WEIR_HOOK(DIR*, fdopendir, int fd) {
  DIR* directory = nullptr;
  on_descriptor(Op::kFdopendir, fd, kUnknownOffset, 0, [&] {
    directory = WEIR_REAL(fdopendir)(fd);
    return directory != nullptr ? 0 : -1;
  });
  return directory;
}

// Null is the end of the directory as well as an error; only a changed errno tells them apart.
#define WEIR_READDIR(symbol)                                                                     \
  WEIR_HOOK(void*, symbol, DIR* directory) {                                                     \
    void* entry = nullptr;                                                                       \
    on_descriptor(Op::kReaddir, directory != nullptr ? dirfd(directory) : -1, kUnknownOffset, 0, \
                  [&] {                                                                          \
                    const auto real = [&] { return WEIR_REAL(symbol)(directory); };              \
                    entry = WEIR_UNLIKELY(stack::any_elsewhere()) && directory != nullptr        \
                                ? next_entry(directory, real)                                    \
                                : real();                                                        \
                    return 0;                                                                    \
                  });                                                                            \
    return entry;                                                                                \
  }
WEIR_READDIR(readdir)
WEIR_READDIR(readdir64)

WEIR_HOOK(int, closedir, DIR* directory) {
  const int fd = directory != nullptr ? dirfd(directory) : -1;
  if (stack::any_elsewhere()) end_listing(directory);
  if (WEIR_UNLIKELY(!recording())) return WEIR_REAL(closedir)(directory);
  Call call{Op::kClosedir, Layer::posix, 0, 0, file_of(fd), 0, 0, kUnknownOffset, 0};
  closed(fd);
  call.start = base::ticks();
  const int result = WEIR_REAL(closedir)(directory);
  call.end = base::ticks();
  set_outcome(call, result < 0);
  record_call(call);
  return result;
}

namespace {

// What filters do lies within this call; the calls that the C library makes in it are its own
// affair.
template <typename Real>
int scanning(int directory, const char* path, Real real) {
  return on_path(Op::kScandir, directory, path, 0, [&] {
    const uint8_t before = thread_log.flags_below;
    thread_log.flags_below = before | weir::wire::kNested;
    const int result = real();
    thread_log.flags_below = before;
    return result;
  });
}

}  // namespace

#define WEIR_SCANDIR(symbol)                                                                       \
  WEIR_HOOK(int, symbol, const char* path, void* list, Filter filter, Order order) {               \
    return scanning(AT_FDCWD, path, [&] {                                                          \
      return scanning_all(AT_FDCWD, path, list, filter, order,                                     \
                          [&] { return WEIR_REAL(symbol)(path, list, filter, order); });           \
    });                                                                                            \
  }
WEIR_SCANDIR(scandir)
WEIR_SCANDIR(scandir64)
#define WEIR_SCANDIR_AT(symbol)                                                               \
  WEIR_HOOK(int, symbol, int directory, const char* path, void* list, Filter filter,          \
            Order order) {                                                                    \
    return scanning(directory, path,                                                          \
                    [&] {                                                                     \
                      return scanning_all(directory, path, list, filter, order, [&] {         \
                        return WEIR_REAL(symbol)(directory, path, list, filter, order);       \
                      });                                                                     \
                    });                                                                       \
  }
WEIR_SCANDIR_AT(scandirat)
WEIR_SCANDIR_AT(scandirat64)
