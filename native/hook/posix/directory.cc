// SPDX-License-Identifier: Apache-2.0
// Directories are read: entry by entry, or at once. Names of files that a layer keeps elsewhere
// come behind those that the kernel lists; what layers have there for themselves is left out.
#include <dirent.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "hook/by_name.h"
#include "hook/observe.h"
#include "base/syscall.h"
#include "base/text.h"
#include "layers/machinery/stack/busy.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;
using weir::trace::thread_log;

namespace {

constexpr size_t kFirstBytes = 64 << 10, kMostBytes = size_t{2} << 30;
constexpr uint32_t kHeads = 4096, kNone = 0;

// A name that layers have when the listing begins. Its file may come under it meanwhile: the
// kernel lists it then, and programs get it once all the same.
struct Name {
  uint64_t inode;
  uint32_t next;  // of the same hash
  uint16_t bytes;  // with its zero
  bool seen;
  char text[];
};
constexpr uint32_t room_of(size_t bytes) {
  return static_cast<uint32_t>((offsetof(Name, text) + bytes + 7) / 8 * 8);
}

struct Listing {
  const DIR* directory;
  Listing* next;
  char* names;  // Name after Name, from 8 on: 0 is none
  size_t mapped;
  uint32_t used, at;
  bool at_end;  // of the kernel's entries
  dirent entry;
  uint32_t heads[kHeads];
};
static_assert(sizeof(dirent) == sizeof(dirent64) &&
              offsetof(dirent, d_name) == offsetof(dirent64, d_name));

constinit Listing* listings = nullptr;  // of open streams that are being read
WEIR_BUSY(busy);
using Busy = stack::BusyWith<&busy>;

Name& name_at(const Listing& listing, uint32_t at) {
  return *reinterpret_cast<Name*>(listing.names + at);
}

uint32_t head_of(const char* name) {
  return static_cast<uint32_t>(base::hash(base::text(name), 3) % kHeads);
}

bool grow(Listing& listing, size_t bytes) {
  if (listing.used + bytes <= listing.mapped) return true;
  const size_t mapped = listing.mapped * 2;
  if (mapped > kMostBytes) return false;
  const long at = base::system_call(SYS_mremap, reinterpret_cast<long>(listing.names),
                                    listing.mapped, mapped, 1 /* MREMAP_MAYMOVE */);
  if (base::failed(at)) return false;
  listing.names = reinterpret_cast<char*>(at);
  listing.mapped = mapped;
  return true;
}

bool add_name(void* to, const char* text, uint64_t inode) {
  auto& listing = *static_cast<Listing*>(to);
  const size_t bytes = strlen(text) + 1;
  if (bytes > sizeof listing.entry.d_name || !grow(listing, room_of(bytes))) return false;
  const uint32_t at = listing.used, head = head_of(text);
  Name& name = name_at(listing, at);
  name.inode = inode;
  name.next = listing.heads[head];
  name.bytes = static_cast<uint16_t>(bytes);
  name.seen = false;
  memcpy(name.text, text, bytes);
  listing.heads[head] = at;
  listing.used += room_of(bytes);
  return true;
}

void give_back(Listing* listing) {
  if (listing == nullptr) return;
  if (listing->names != nullptr) base::unmap(listing->names, listing->mapped);
  base::unmap(listing, sizeof *listing);
}

// Null: no memory.
Listing* list(int directory) {
  constexpr int kAccess = PROT_READ | PROT_WRITE, kOwn = MAP_PRIVATE | MAP_ANONYMOUS;
  const long at = base::map(sizeof(Listing), kAccess, kOwn);
  if (base::failed(at)) return nullptr;
  auto* const listing = reinterpret_cast<Listing*>(at);
  const long names = base::map(kFirstBytes, kAccess, kOwn);
  if (base::failed(names)) {
    give_back(listing);
    return nullptr;
  }
  listing->names = reinterpret_cast<char*>(names);
  listing->mapped = kFirstBytes;
  listing->used = listing->at = 8;
  stack::list_names(directory, add_name, listing);
  return listing;
}

void see(const Listing& listing, const char* text) {
  for (uint32_t at = listing.heads[head_of(text)]; at != kNone; at = name_at(listing, at).next) {
    if (strcmp(name_at(listing, at).text, text) == 0) name_at(listing, at).seen = true;
  }
}

dirent* next_name(Listing& listing) {
  while (listing.at < listing.used) {
    const Name& name = name_at(listing, listing.at);
    listing.at += room_of(name.bytes);
    if (name.seen) continue;
    listing.entry.d_ino = name.inode;
    listing.entry.d_off = 0;
    listing.entry.d_type = DT_REG;
    listing.entry.d_reclen =
        static_cast<unsigned short>((offsetof(dirent, d_name) + name.bytes + 7) / 8 * 8);
    memcpy(listing.entry.d_name, name.text, name.bytes);
    return &listing.entry;
  }
  return nullptr;
}

Listing* listing_of(const DIR* directory) {
  if (WEIR_LIKELY(base::load_relaxed(&listings) == nullptr)) return nullptr;
  const Busy hold;
  Listing* found = listings;
  while (found != nullptr && found->directory != directory) found = found->next;
  return found;
}

void end_listing(const DIR* directory) {
  if (WEIR_LIKELY(base::load_relaxed(&listings) == nullptr)) return;
  Listing* found = nullptr;
  {
    const Busy hold;
    for (Listing** at = &listings; *at != nullptr; at = &(*at)->next) {
      if ((*at)->directory != directory) continue;
      found = *at;
      *at = found->next;
      break;
    }
  }
  give_back(found);
}

// At the first entry.
Listing* begin_listing(DIR* directory) {
  Listing* const listing = list(dirfd(directory));
  if (listing == nullptr) return nullptr;
  listing->directory = directory;
  const Busy hold;
  listing->next = listings;
  base::store(&listings, listing);
  return listing;
}

// real() gives the kernel's next entry, null at the end or with an errno.
template <typename Real>
void* reading(DIR* directory, Real real) {
  if (WEIR_LIKELY(!stack::any_layer_has_names()) || directory == nullptr) return real();
  const int before = errno;
  Listing* listing = listing_of(directory);
  if (listing == nullptr) listing = begin_listing(directory);
  errno = 0;
  auto* entry = static_cast<dirent*>(real());
  while (entry != nullptr && stack::is_hidden(entry->d_name)) entry = static_cast<dirent*>(real());
  if (entry == nullptr && errno != 0) return nullptr;
  errno = before;
  if (listing == nullptr) return entry;
  if (entry != nullptr) {
    if (listing->at_end) listing->at_end = false, listing->at = 8;  // seekdir went back
    see(*listing, entry->d_name);
    return entry;
  }
  listing->at_end = true;
  return next_name(*listing);
}

using Filter = int (*)(const void*);
using Order = int (*)(const void*, const void*);

// One more entry at the end of scandir's array. False: no memory.
bool append(dirent*** entries, int* count, const dirent& entry) {
  auto** const grown = static_cast<dirent**>(
      realloc(*entries, (static_cast<size_t>(*count) + 1) * sizeof(dirent*)));
  if (grown == nullptr) return false;
  *entries = grown;
  auto* const copy = static_cast<dirent*>(malloc(entry.d_reclen));
  if (copy == nullptr) return false;
  memcpy(copy, &entry, entry.d_reclen);
  grown[(*count)++] = copy;
  return true;
}

int leave_out_hidden(dirent** entries, int count) {
  int left = 0;
  for (int i = 0; i < count; ++i) {
    if (stack::is_hidden(entries[i]->d_name)) free(entries[i]);
    else entries[left++] = entries[i];
  }
  return left;
}

Listing* list(int directory, const char* path) {
  const base::HoldsDescriptor held;
  const long fd = base::open_at(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (base::failed(fd)) return nullptr;
  Listing* const listing = list(static_cast<int>(fd));
  base::close_fd(static_cast<int>(fd));
  return listing;
}

// What scandir gives: an array of entries, each in memory of its own. -1 with ENOMEM: some are
// missing.
template <typename Real>
int scanning_all(int directory, const char* path, void* result, Filter filter, Order order,
                 Real real) {
  if (WEIR_LIKELY(!stack::any_layer_has_names())) return real();
  const int before = errno;
  Listing* const listing = list(directory, path);
  errno = before;
  int count = real();
  if (count < 0 || listing == nullptr) {
    give_back(listing);
    return count;
  }
  auto*** const entries = static_cast<dirent***>(result);
  // An entry that the filter left out is no name of a layer's, or the filter leaves that out too.
  for (int i = 0; i < count; ++i) see(*listing, (*entries)[i]->d_name);
  count = leave_out_hidden(*entries, count);
  const int of_kernel = count;
  bool complete = true;
  while (const dirent* const entry = complete ? next_name(*listing) : nullptr) {
    if (filter == nullptr || filter(entry) != 0) complete = append(entries, &count, *entry);
  }
  give_back(listing);
  if (!complete) {
    for (int i = 0; i < count; ++i) free((*entries)[i]);
    free(*entries);
    errno = ENOMEM;
    return -1;
  }
  if (order != nullptr && count > of_kernel)
    qsort(*entries, static_cast<size_t>(count), sizeof(dirent*), order);
  return count;
}

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

WEIR_HOOK(DIR*, opendir, const char* path) {
  DIR* directory = nullptr;
  opening(Op::kOpendir, AT_FDCWD, path, O_RDONLY, [&] {
    directory = by_name(AT_FDCWD, path, true, same_for_all(-ENOTDIR),
                        [](int, const char* there) { return WEIR_REAL(opendir)(there); });
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
                    entry = reading(directory, [&] { return WEIR_REAL(symbol)(directory); });    \
                    return 0;                                                                    \
                  });                                                                            \
    return entry;                                                                                \
  }
WEIR_READDIR(readdir)
WEIR_READDIR(readdir64)

WEIR_HOOK(int, closedir, DIR* directory) {
  const int fd = directory != nullptr ? dirfd(directory) : -1;
  end_listing(directory);
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

WEIR_HOOK(void, rewinddir, DIR* directory) {
  end_listing(directory);
  WEIR_REAL(rewinddir)(directory);
}

#define WEIR_SCANDIR(symbol, directory, parameters, ...)                                 \
  WEIR_HOOK(int, symbol, parameters, void* list, Filter filter, Order order) {           \
    return scanning(directory, path, [&] {                                               \
      return scanning_all(directory, path, list, filter, order, [&] {                    \
        return WEIR_REAL(symbol)(__VA_ARGS__, list, filter, order);                      \
      });                                                                                \
    });                                                                                  \
  }
WEIR_SCANDIR(scandir, AT_FDCWD, const char* path, path)
WEIR_SCANDIR(scandir64, AT_FDCWD, const char* path, path)
WEIR_SCANDIR(scandirat, directory, WEIR_LIST(int directory, const char* path), directory, path)
WEIR_SCANDIR(scandirat64, directory, WEIR_LIST(int directory, const char* path), directory, path)
