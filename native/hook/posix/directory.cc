// SPDX-License-Identifier: Apache-2.0
// Directories as streams. Where a layer stores files apart from their names (pack), a listing goes
// on with those names behind the real ones, and leaves out what the layer stores them in.
#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "hook/observe.h"
#include "hook/posix/directory.h"
#include "layers/machinery/stack/apart.h"
#include "layers/machinery/stack/busy.h"
#include "base/scratch.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;

namespace {

// An open directory with names apart.
struct Stream {
  DIR* directory;
  Stream* next;
  bool at_end;  // of the real names
  stack::Listing listing;
  dirent64 entry;
  char room[base::Scratch::kBytes];
};
constinit Stream* streams = nullptr;
constinit uint32_t busy = 0;
using Busy = stack::BusyWith<&busy>;

static_assert(sizeof(dirent) == sizeof(dirent64) &&
              offsetof(dirent, d_name) == offsetof(dirent64, d_name));

Stream* stream_of(const DIR* directory) {
  if (WEIR_LIKELY(base::load_relaxed(&streams) == nullptr)) return nullptr;
  const Busy hold;
  Stream* s = streams;
  while (s != nullptr && s->directory != directory) s = s->next;
  return s;
}

void end_stream(const DIR* directory) {
  if (WEIR_LIKELY(base::load_relaxed(&streams) == nullptr)) return;
  Stream* found = nullptr;
  {
    const Busy hold;
    for (Stream** at = &streams; *at != nullptr; at = &(*at)->next) {
      if ((*at)->directory != directory) continue;
      found = *at;
      *at = found->next;
      break;
    }
  }
  if (found != nullptr) base::unmap(found, sizeof *found);
}

void begin_stream(DIR* directory) {
  if (WEIR_LIKELY(!stack::has_names_apart()) || directory == nullptr) return;
  end_stream(directory);
  const long at = base::map(sizeof(Stream), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(at)) return;
  auto* const s = reinterpret_cast<Stream*>(at);
  s->directory = directory;
  if (!stack::begin_listing(dirfd(directory), nullptr, s->room, &s->listing)) {
    base::unmap(s, sizeof *s);
    return;
  }
  const Busy hold;
  s->next = streams;
  base::store(&streams, s);
}

// Behind the last real name.
dirent64* next_name(Stream* s) {
  if (!stack::next_apart(&s->listing)) return nullptr;
  const size_t n = strlen(s->listing.name);
  s->entry.d_ino = s->listing.inode;
  s->entry.d_off = 0;
  s->entry.d_type = DT_REG;
  s->entry.d_reclen =
      static_cast<unsigned short>((offsetof(dirent64, d_name) + n + 1 + 7) / 8 * 8);
  memcpy(s->entry.d_name, s->listing.name, n + 1);
  return &s->entry;
}

template <typename Real>
void* reading(DIR* directory, Real real) {
  Stream* const s = stream_of(directory);
  if (WEIR_LIKELY(s == nullptr)) return real();
  const int before = errno;
  while (!s->at_end) {
    errno = 0;
    void* const entry = real();
    if (entry == nullptr && errno != 0) return nullptr;
    errno = before;
    if (entry == nullptr) s->at_end = true;
    else if (!stack::hides_name(s->listing, static_cast<dirent64*>(entry)->d_name)) return entry;
  }
  void* const entry = next_name(s);
  errno = before;
  return entry;
}

using Filter = int (*)(const void*);
using Order = int (*)(const void*, const void*);

// One more name at the end of scandir's list. False: no memory.
bool append(dirent64*** list, int* count, const dirent64& entry) {
  auto** const grown = static_cast<dirent64**>(
      realloc(*list, (static_cast<size_t>(*count) + 1) * sizeof **list));
  if (grown == nullptr) return false;
  *list = grown;
  auto* const copy = static_cast<dirent64*>(malloc(entry.d_reclen));
  if (copy == nullptr) return false;
  memcpy(copy, &entry, entry.d_reclen);
  grown[(*count)++] = copy;
  return true;
}

}  // namespace

namespace weir::hook {

int complete_scan(int directory, const char* path, void* list, int count, void* filter,
                  void* order) {
  if (WEIR_LIKELY(!stack::has_names_apart()) || count < 0) return count;
  const long at = base::map(sizeof(Stream), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(at)) return count;
  auto* const s = reinterpret_cast<Stream*>(at);
  auto*** const names = static_cast<dirent64***>(list);
  const auto wants = reinterpret_cast<Filter>(filter);
  if (stack::begin_listing(directory, path, s->room, &s->listing)) {
    int kept = 0;
    for (int i = 0; i < count; ++i) {
      if (stack::hides_name(s->listing, (*names)[i]->d_name)) free((*names)[i]);
      else (*names)[kept++] = (*names)[i];
    }
    count = kept;
    while (const dirent64* const entry = next_name(s)) {
      if ((wants == nullptr || wants(entry) != 0) && !append(names, &count, *entry)) break;
    }
    if (order != nullptr)
      qsort(*names, static_cast<size_t>(count), sizeof **names, reinterpret_cast<Order>(order));
  }
  base::unmap(s, sizeof *s);
  return count;
}

}  // namespace weir::hook

WEIR_HOOK(DIR*, opendir, const char* path) {
  DIR* directory = nullptr;
  opening(Op::kOpendir, AT_FDCWD, path, O_RDONLY, [&] {
    directory = WEIR_REAL(opendir)(path);
    return directory != nullptr ? dirfd(directory) : -1;
  });
  begin_stream(directory);
  return directory;
}

WEIR_HOOK(DIR*, fdopendir, int fd) {
  DIR* directory = nullptr;
  on_descriptor(Op::kFdopendir, fd, kUnknownOffset, 0, [&] {
    directory = WEIR_REAL(fdopendir)(fd);
    return directory != nullptr ? 0 : -1;
  });
  begin_stream(directory);
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
  end_stream(directory);
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
  if (Stream* const s = stream_of(directory); WEIR_UNLIKELY(s != nullptr)) {
    s->at_end = false;
    stack::begin_listing(dirfd(directory), nullptr, s->room, &s->listing);
  }
  WEIR_REAL(rewinddir)(directory);
}
