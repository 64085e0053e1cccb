// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/apart.h"

#include <fcntl.h>
#include <string.h>

#include "base/directory_path.h"
#include "base/scratch.h"
#include "base/syscall.h"
#include "layers/machinery/stack/build.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/lock.h"
#include "layers/machinery/stack/notes.h"
#include "layers/machinery/stack/table.h"

namespace weir::stack {

constinit const NameService* names_apart = nullptr;
constinit uint32_t creation_mask = 022;

namespace {

constexpr size_t kLongestPath = 4096;

const rules::LayerSpec* spec_of(const char* whole) {
  const rules::Rule* const rule = rule_for(whole);
  if (rule == nullptr) return nullptr;
  for (uint32_t i = 0; i < rule->stack.count; ++i) {
    const Kind* const kind = find_kind(rule->stack.layers[i].name);
    if (kind != nullptr && kind->names != nullptr) return &rule->stack.layers[i];
  }
  return nullptr;
}

// The directory as the kernel finds it, where a path has ".." or the like.
bool resolve(int directory, const char* path, char* to) {
  const base::Scratch given;
  if (given.data() == nullptr || !base::copy_text(given.data(), path, kLongestPath)) return false;
  if (rules::is_exact(base::text(given.data())))
    return make_path_absolute(directory, given.data(), to);
  char* const slash = strrchr(given.data(), '/');
  const char* const name = slash != nullptr ? slash + 1 : given.data();
  if (slash == nullptr || name[0] == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
    return false;
  *slash = 0;
  const base::HoldsDescriptor held;
  const long fd = base::open_at(directory, slash == given.data() ? "/" : given.data(),
                                O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (base::failed(fd)) return false;
  const base::Text begin =
      base::directory_path(static_cast<int>(fd), to, base::Scratch::kBytes - kLongestPath);
  base::close_fd(static_cast<int>(fd));
  if (begin.size == 0) return false;
  base::Writer text(to + begin.size, base::Scratch::kBytes - begin.size);
  text.add(begin.size == 1 ? "" : "/").add(name);
  return !text.cut();
}

void split(char* whole, Place* to) {
  char* const slash = strrchr(whole, '/');
  to->name = base::text(slash + 1);
  to->directory = {whole, slash == whole ? 1 : static_cast<size_t>(slash - whole)};
}

// Calls ask(service, place) with signals held back; true: it answered.
template <typename Ask>
bool ask_names(int directory, const char* path, int* result, Ask ask) {
  if (!active() || path == nullptr) return false;
  const int before = errno;
  const base::SignalsBlocked blocked;
  const base::Scratch room;
  Place place;
  Result r = kPass;
  if (find_place(directory, path, room.data(), &place) && place.spec != nullptr)
    r = ask(*names_apart, place);
  errno = before;
  if (r == kPass) return false;
  *result = r < 0 ? -1 : static_cast<int>(r);
  if (r < 0) errno = static_cast<int>(-r);
  return true;
}

}  // namespace

bool find_place(int directory, const char* path, char* room, Place* to) {
  if (path == nullptr || room == nullptr || !may_change()) return false;
  if (!resolve(directory, path, room)) return false;
  to->spec = spec_of(room);
  split(room, to);
  return to->name.size != 0;
}

void begin_apart(const NameService* service) {
  if (has_names_apart()) return;
  char about[2048];
  const long n = base::read_file("/proc/self/status", about, sizeof about);
  const char* const line = n > 0 ? strstr(about, "\nUmask:\t") : nullptr;
  uint32_t mask = 0;
  for (const char* digit = line != nullptr ? line + 8 : "022"; *digit >= '0' && *digit <= '7';)
    mask = mask * 8 + static_cast<uint32_t>(*digit++ - '0');
  base::store(&creation_mask, mask);
  base::store(&names_apart, service);
}

bool stat_apart(int directory, const char* path, struct stat* to, int* result) {
  return ask_names(directory, path, result, [&](const NameService& s, const Place& place) {
    struct stat about {};
    const Result r = s.stat(place, &about);
    if (r == 0) *to = about;
    return r;
  });
}

bool access_apart(int directory, const char* path, int mode, int* result) {
  return ask_names(directory, path, result, [&](const NameService& s, const Place& place) {
    return s.access(place, mode);
  });
}

bool remove_apart(int directory, const char* path, int* result) {
  return ask_names(directory, path, result,
                   [&](const NameService& s, const Place& place) { return s.remove(place); });
}

bool change_apart(int directory, const char* path, const Change& change, int* result) {
  return ask_names(directory, path, result, [&](const NameService& s, const Place& place) {
    return s.change(place, change);
  });
}

bool truncate_apart(const char* path, uint64_t bytes, int* result) {
  return ask_names(AT_FDCWD, path, result, [&](const NameService& s, const Place& place) {
    return s.truncate(place, bytes);
  });
}

bool change_apart_of(int fd, const Change& change, int* result) {
  File* const f = known_at(fd);
  if (!is_apart(f) || (f->flags & O_ACCMODE) != O_RDONLY) return false;
  const base::SignalsBlocked blocked;
  const Result r = names_apart->change_open(*apart_layer(f), change);
  *result = r < 0 ? -1 : 0;
  if (r < 0) errno = static_cast<int>(-r);
  return true;
}

bool follow_apart(int directory, const char* path, char* room) {
  if (!active() || path == nullptr || room == nullptr || !may_change()) return false;
  const int before = errno;
  const base::SignalsBlocked blocked;
  const base::Scratch given, target;
  char* const at = given.data();
  bool found = false;
  if (at != nullptr && target.data() != nullptr && base::copy_text(at, path, kLongestPath)) {
    const long n = base::system_call(SYS_readlinkat, directory, reinterpret_cast<long>(at),
                                     reinterpret_cast<long>(target.data()), kLongestPath - 1);
    if (!base::failed(n)) {
      target.data()[n] = 0;
      char* const slash = strrchr(at, '/');
      base::Writer text(slash != nullptr ? slash + 1 : at,
                        base::Scratch::kBytes - static_cast<size_t>(slash != nullptr
                                                                        ? slash + 1 - at : 0));
      text.add(target.data());
      found = !text.cut() && (target.data()[0] == '/' ? resolve(AT_FDCWD, target.data(), room)
                                                      : resolve(directory, at, room));
    }
  }
  errno = before;
  return found;
}

void surrender_apart(int directory, const char* path) {
  int result;
  ask_names(directory, path, &result, [](const NameService& s, const Place& place) {
    for (int fd = 0; fd <= highest_known(); ++fd) {
      File* const f = known_at(fd);
      if (is_apart(f) && s.is_named(*apart_layer(f), place)) make_real(f, Reason::kUnsupported);
    }
    s.surrender(place);
    return kPass;
  });
}

void became_apart(int directory, const char* path, bool real) {
  int result;
  ask_names(directory, path, &result, [real](const NameService& s, const Place& place) {
    s.became(place, real);
    return kPass;
  });
}

bool rename_apart(int directory, const char* path, int to_directory, const char* to, unsigned flags,
                  int* result) {
  if (!active() || path == nullptr || to == nullptr) return false;
  const int before = errno;
  const base::SignalsBlocked blocked;
  const base::Scratch from_room, to_room;
  Place from, other;
  Result r = kPass;
  if (find_place(directory, path, from_room.data(), &from) &&
      find_place(to_directory, to, to_room.data(), &other) &&
      (from.spec != nullptr || other.spec != nullptr)) {
    if (flags == 0 && from.spec == other.spec && from.directory.size == other.directory.size &&
        memcmp(from.directory.data, other.directory.data, from.directory.size) == 0) {
      r = names_apart->rename(from, other);
    } else {
      surrender_apart(directory, path);
      if (flags != 0) surrender_apart(to_directory, to);
    }
  }
  errno = before;
  if (r == kPass) return false;
  *result = r < 0 ? -1 : 0;
  if (r < 0) errno = static_cast<int>(-r);
  return true;
}

void after_rename(int directory, const char* path, int to_directory, const char* to) {
  const int before = errno;
  struct stat about;
  if (base::system_call(SYS_newfstatat, to_directory, reinterpret_cast<long>(to),
                        reinterpret_cast<long>(&about), AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISDIR(about.st_mode)) {
      const base::SignalsBlocked blocked;
      names_apart->directories_moved();
    } else {
      became_apart(directory, path, false);
      became_apart(to_directory, to, true);
    }
  }
  errno = before;
}

bool begin_listing(int directory, const char* path, char* room, Listing* to) {
  if (!active() || !may_change() || room == nullptr) return false;
  const int before = errno;
  const base::SignalsBlocked blocked;
  *to = {};
  const base::HoldsDescriptor held;
  const long fd = path != nullptr
                      ? base::open_at(directory, path, O_PATH | O_DIRECTORY | O_CLOEXEC)
                      : directory;
  bool found = false;
  if (!base::failed(fd)) {
    const base::Text whole =
        base::directory_path(static_cast<int>(fd), room, base::Scratch::kBytes / 2);
    if (path != nullptr) base::close_fd(static_cast<int>(fd));
    found = whole.size != 0;
    if (found) {
      room[whole.size] = 0;
      to->place.directory = whole;
    }
  }
  if (found) found = next_rule_apart(&to->place.spec);
  errno = before;
  return found;
}

bool next_apart(Listing* listing) {
  const base::SignalsBlocked blocked;
  while (listing->place.spec != nullptr) {
    if (names_apart->next(listing)) return true;
    if (!next_rule_apart(&listing->place.spec)) listing->place.spec = nullptr;
    listing->state[0] = listing->state[1] = 0;
  }
  return false;
}

bool hides_name(const Listing& listing, const char* name) {
  const base::SignalsBlocked blocked;
  Place place{nullptr, listing.place.directory, base::text(name)};
  while (next_rule_apart(&place.spec)) {
    if (names_apart->hides(place)) return true;
  }
  return false;
}

void before_rmdir(int directory, const char* path) {
  const base::Scratch room;
  Listing listing;
  if (!begin_listing(directory, path, room.data(), &listing)) return;
  const base::SignalsBlocked blocked;
  do names_apart->remove_directory(listing.place);
  while (next_rule_apart(&listing.place.spec));
}

void moved_apart(File* f, int from, int to) {
  const base::SignalsBlocked blocked;
  names_apart->moved(*apart_layer(f), from, to);
}

void patch_apart(const File* f, struct stat* to) {
  const base::SignalsBlocked blocked;
  struct stat about;
  if (names_apart->stat_open(*apart_layer(f), &about) == 0) {
    to->st_dev = about.st_dev;
    to->st_ino = about.st_ino;
    to->st_nlink = 1;
  } else {
    to->st_nlink = 0;  // removed, as a real one that is open still
  }
}

namespace {

// The real file as `f` has its memory open, under all of its numbers.
void turn_to_real(File* f, int real) {
  char path[32];
  base::Writer(path, sizeof path).add("/proc/self/fd/").add_number(static_cast<uint64_t>(real));
  constexpr int kKept = O_ACCMODE | O_APPEND | O_NONBLOCK | O_SYNC | O_NOATIME;
  const long fd = base::open_at(AT_FDCWD, path, (f->flags & kKept) | O_CLOEXEC);
  if (base::failed(fd)) return;
  const long at = base::system_call(SYS_lseek, f->descriptor, 0, SEEK_CUR);
  base::system_call(SYS_lseek, fd, at, SEEK_SET);
  for (int number = 0; number <= highest_known(); ++number) {
    if (known_at(number) != f) continue;
    const long kept = base::system_call(SYS_fcntl, number, F_GETFD);
    base::system_call(SYS_dup3, fd, number, (kept & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
  }
  base::close_fd(static_cast<int>(fd));
  f->apart = false;
}

}  // namespace

bool make_real(File* f, Reason reason) {
  if (!f->apart || !may_change()) return false;
  const int before = errno;
  const base::SignalsBlocked blocked;
  const base::HoldsDescriptor held;
  File* writer = nullptr;  // of the openings that have the same memory
  for (int fd = 0; fd <= highest_known(); ++fd) {
    File* const g = known_at(fd);
    if (is_apart(g) && g->inode == f->inode && (g->flags & O_ACCMODE) != O_RDONLY) writer = g;
  }
  const bool locked = writer != nullptr && lock(writer);
  const Result fd = writer != nullptr ? names_apart->make_real(*apart_layer(writer)) : -EBADF;
  if (fd >= 0) {
    for (int number = 0; number <= highest_known(); ++number) {
      File* const g = known_at(number);
      if (!is_apart(g) || g->inode != f->inode) continue;
      turn_to_real(g, static_cast<int>(fd));
      note_bypass(g, apart_layer(g), reason);
    }
    base::close_fd(static_cast<int>(fd));
  }
  if (locked) unlock(writer);
  errno = before;
  return fd >= 0;
}

namespace {

template <typename Each>
void for_each_apart(Each each) {
  if (!has_names_apart()) return;
  for (int fd = 0; fd <= highest_known(); ++fd) {
    File* const f = known_at(fd);
    if (is_apart(f) && f->descriptor == fd) each(f);
  }
}

}  // namespace

void make_all_real(Reason reason) {
  for_each_apart([reason](File* f) { make_real(f, reason); });
}

void end_apart(bool late) {
  if (!has_names_apart() || !may_change()) return;
  for_each_apart([late](File* f) {
    if ((f->flags & O_ACCMODE) == O_RDONLY) return;
    const base::SignalsBlocked blocked;
    f->syncs |= late;
    const Result r = names_apart->store(*apart_layer(f));
    if (r < 0) defer(f, apart_layer(f), static_cast<int>(-r), 0);
  });
  const base::SignalsBlocked blocked;
  names_apart->leave();
}

}  // namespace weir::stack
