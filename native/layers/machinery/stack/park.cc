// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/park.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "layers/machinery/node/registry.h"
#include "base/scratch.h"
#include "base/clock.h"
#include "base/credentials.h"
#include "base/syscall.h"
#include "layers/machinery/stack/build.h"
#include "layers/machinery/stack/busy.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/lock.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/private.h"
#include "layers/machinery/stack/sharing.h"
#include "layers/machinery/stack/table.h"

namespace weir::stack {

constinit uint32_t parked_count = 0;

namespace {

constexpr uint32_t kPlaces = 256;
constexpr uint32_t kFuse = 0x65735546;  // statfs f_type
// Of open's flags: nothing that a file open already would show.
constexpr int kIgnored = O_CREAT | O_NOCTTY | O_CLOEXEC;

struct Place {
  File* file;  // null: free
  uint64_t name_hash;
  uint64_t epoch;  // of names on the node, when it was last compared with its name
  uint64_t valid_until;
  uint64_t stamp;
  Parking how;
  bool parked;  // false: open, and may be parked
  base::Credentials opener;
};
constinit Place places[kPlaces] = {};
constinit uint32_t used = 0;  // no place from here on was ever taken
constinit uint64_t clock = 0;
// More files in turn than there are places: each is closed before its name comes again. Then those
// that are kept stay, and the others pass, for a while.
// Files closed for others, after which it is asked how many were found again meanwhile.
constexpr uint32_t kLook = 128;
constexpr uint32_t kRest = 8192;  // openings
constinit uint32_t closed_for_others = 0, found_again = 0, resting = 0;
constinit uint32_t most_of_all = 0;
WEIR_BUSY(busy);

using Busy = BusyWith<&busy>;

uint64_t hash_of(const char* path) { return base::hash(base::text(path), 0); }

Place* place_of(const File* f) {
  Place* p = &places[f->parks - 1];
  return f->parks != 0 && p->file == f ? p : nullptr;
}

// Takes one that is parked and fits out of the parking, for the caller alone.
template <typename Fits>
File* take(Fits fits, Place* copy) {
  if (!any_parked()) return nullptr;
  const Busy hold;
  for (uint32_t i = 0; i < used; ++i) {
    Place& p = places[i];
    if (!p.parked || !fits(p)) continue;
    p.parked = false;
    base::fetch_add(&parked_count, ~0u);
    *copy = p;
    return p.file;
  }
  return nullptr;
}

// A file that was taken is closed as its program's close would have closed it.
void end(File* f) {
  const int before = errno;
  end_parked(f);
  errno = before;
}

// The file is to be found in the parking.
void put(Place& p) {
  p.parked = true;
  base::fetch_add(&parked_count, 1u);
}

// Its descriptor is to become another number.
void end_requests(File* f) {
  if (f->left) return;
  for (int i = 0; i < f->layer_count; ++i) {
    if ((f->top[i].kind->flags & (kHolds | kOrdered)) == kHolds)
      return f->enter.invalidate->kind->invalidate(*f->enter.invalidate);
  }
}

template <typename Fits>
bool end_all(Fits fits) {
  bool any = false;
  Place place{};
  while (File* f = take(fits, &place)) {
    end(f);
    any = true;
  }
  return any;
}

// Whether the name still is this file. One request.
bool still_is(const File* f) {
  struct stat about;
  if (base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(f->path),
                        reinterpret_cast<long>(&about), 0) != 0)
    return false;
  return about.st_dev == f->device && about.st_ino == f->inode;
}

bool opens_alike(const File* f, int flags) { return ((f->flags ^ flags) & ~kIgnored) == 0; }

bool make_room(uint32_t most) {
  while (base::load_relaxed(&parked_count) >= most) {
    if (base::load_relaxed(&resting) != 0) return false;
    if (base::fetch_add(&closed_for_others, 1u) + 1 >= kLook) {
      if (base::exchange(&found_again, 0u) < kLook / 4) {
        base::store(&most_of_all, most);
        base::store(&resting, kRest);
      }
      base::store(&closed_for_others, 0u);
    }
    uint64_t oldest = ~uint64_t{0};
    {
      const Busy hold;
      for (const Place& p : places) {
        if (p.parked && p.stamp < oldest) oldest = p.stamp;
      }
    }
    if (!end_all([oldest](const Place& p) { return p.stamp == oldest; })) return false;
  }
  return true;
}

bool lies_below(const char* path, const char* directory) {
  const size_t n = strlen(directory);
  return strncmp(path, directory, n) == 0 && (path[n] == 0 || path[n] == '/');
}

}  // namespace

void may_park(File* f, const Parking& how) {
  if (!f->exact) return;
  const uint64_t epoch = node::names_epoch(), until = base::recent_ns() + how.valid_ns,
                 hash = hash_of(f->path);
  const Busy hold;
  for (uint32_t i = 0; i < kPlaces; ++i) {
    if (places[i].file != nullptr) continue;
    places[i] = {f, hash, epoch, until, 0, how, false, base::credentials()};
    f->parks = static_cast<uint16_t>(i + 1);
    if (i >= used) used = i + 1;
    return;
  }
}

bool house_is_full() {
  const uint32_t left = base::load_relaxed(&resting);
  if (WEIR_LIKELY(left == 0)) return false;
  base::store(&resting, left - 1);
  return base::load_relaxed(&parked_count) >= base::load_relaxed(&most_of_all);
}

void never_park(const File* f) {
  const Busy hold;
  if (Place* p = place_of(f); p != nullptr) p->file = nullptr;
}

namespace {

// The number is closed for the program, by whatever call it goes on to use it: the file moves to a
// high one.
bool give_number_back(File* f) {
  if (f->fs_type == kFuse) return true;
  end_requests(f);
  if (move_up(&f->descriptor)) return true;
  end_parking(f);
  return false;
}

}  // namespace

bool park(int fd) {
  File* const f = listed_at(fd);
  if (f == nullptr || f->parks == 0 || f->left || fd <= 2 || !may_change() || base::sealed())
    return false;
  const base::SignalsBlocked blocked;
  uint32_t most = 0;
  {
    const Busy hold;
    if (const Place* p = place_of(f); p != nullptr) most = p->how.most;
  }
  if (most == 0 || !make_room(most) || !lock(f)) return false;
  const bool parked = !f->left && f->error == 0 && f->leaving == 0 && !f->locked &&
                      begin_parking(fd, f) && give_number_back(f);
  if (parked) {
    const Busy hold;
    Place* p = place_of(f);
    p->stamp = ++clock;
    put(*p);
  }
  unlock(f);
  return parked;
}

void count_parked_in_child() {
  uint32_t all = 0;
  for (const Place& p : places) all += p.parked;
  base::store(&parked_count, all);
}

File* unpark(const char* absolute_path, int flags) {
  if ((flags & (O_TRUNC | O_EXCL)) != 0) return nullptr;
  const base::SignalsBlocked blocked;
  Place place{};
  const uint64_t hash = hash_of(absolute_path);
  File* f = take(
      [=](const Place& p) {
        return p.name_hash == hash && opens_alike(p.file, flags) &&
               strcmp(p.file->path, absolute_path) == 0;
      },
      &place);
  if (f == nullptr) return nullptr;
  const uint64_t now = base::recent_ns(), epoch = node::names_epoch();
  const bool old = now >= place.valid_until;
  if (base::credentials() != place.opener) {  // another user may not be allowed to open it
    end(f);
    return nullptr;
  }
  if (!f->left && (old || epoch != place.epoch)) {
    if (!still_is(f)) {
      end(f);
      return nullptr;
    }
    ++*place.how.revalidated;
    const Busy hold;
    Place* p = place_of(f);
    p->valid_until = now + place.how.valid_ns;
    p->epoch = epoch;
  }
  if (!lock(f)) return nullptr;
  if (f->left) {
    unlock(f);
    end(f);
    return nullptr;
  }
  // Another node may have made it longer.
  if (old) f->enter.invalidate->kind->invalidate(*f->enter.invalidate);
  if (f->fs_type != kFuse) {
    end_requests(f);
    if (!move_down(&f->descriptor)) {
      unlock(f);
      end(f);
      return nullptr;
    }
  }
  ++*place.how.reopened;
  base::fetch_add(&found_again, 1u);
  f->position = 0;
  f->flags = flags & ~(O_EXCL | O_TRUNC);
  end_parking(f);
  base::system_call(SYS_fcntl, f->descriptor, F_SETFD, (flags & O_CLOEXEC) != 0 ? FD_CLOEXEC : 0);
  unlock(f);
  return f;
}

bool size_of_kept(const char* absolute_path, uint64_t device, uint64_t inode, uint64_t* bytes) {
  const uint64_t hash = hash_of(absolute_path);
  File* f = nullptr;
  {
    const Busy hold;
    for (uint32_t i = 0; i < used && f == nullptr; ++i) {
      const Place& p = places[i];
      if (p.file == nullptr || p.name_hash != hash || p.file->device != device ||
          p.file->inode != inode)
        continue;
      if ((p.file->flags & O_APPEND) != 0 && strcmp(p.file->path, absolute_path) == 0) f = p.file;
    }
  }
  if (f == nullptr || !lock(f)) return false;
  const bool known = !f->left && f->parks != 0;
  const Result size = known ? f->enter.size->kind->size(*f->enter.size) : -1;
  unlock(f);
  if (size >= 0) *bytes = static_cast<uint64_t>(size);
  return size >= 0;
}

bool drop_parked() { return end_all([](const Place&) { return true; }); }

void drop_left() {
  end_all([](const Place& p) { return p.file->left; });
}

void drop_named(const char* absolute_path) {
  end_all([=](const Place& p) { return lies_below(p.file->path, absolute_path); });
}

void drop_same_file(int fd) {
  base::Identity file;
  if (!any_parked() || !base::identify(fd, &file)) return;
  end_all([&](const Place& p) {
    return p.file->device == file.device && p.file->inode == file.number;
  });
}

void drop_parked_at_quick_end() {
  end_all([](const Place& p) { return base::load_relaxed(&p.file->lock) == 0; });
}

void flush_parked() {
  for (Place& p : places) {
    File* const f = p.file;
    if (f == nullptr || !p.parked || !lock(f)) continue;
    if (p.file == f && !f->left) flush_inside(f);
    unlock(f);
  }
}

void name_changes(int directory, const char* path) {
  if (!active() || !may_change()) return;
  if (any_parked() && path != nullptr) {
    const base::Scratch given, whole;
    if (given.data() != nullptr && whole.data() != nullptr &&
        base::copy_text(given.data(), path, 4096) &&
        make_path_absolute(directory, given.data(), whole.data())) {
      drop_named(whole.data());
    }
  }
  node::names_changed();
}

int names_then_changed(int result) {
  if (active()) node::names_changed();
  return result;
}

}  // namespace weir::stack
