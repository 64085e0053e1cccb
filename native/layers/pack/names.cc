// SPDX-License-Identifier: Apache-2.0
// Calls on names of packed files.
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "layers/pack/pack.h"
#include "layers/pack/place.h"

namespace weir::layers::pack {

namespace {

using stack::Change;
using stack::kPass;
using stack::Listing;

// A name that is packed, or open and not yet closed. Busy is held.
struct Found {
  Container* container = nullptr;
  Name* name = nullptr;
  Version version{};
  bool there() const { return version.state == kPacked || version.state == kOpened; }
};

Found find(const Place& p) {
  Found f;
  int error = 0;
  if (p.spec == nullptr || p.name.size > kLongestName) return f;
  f.container = container_of(*p.spec, p.directory, false, &error);
  if (f.container == nullptr) return f;
  f.name = find_name(f.container->segment, p.name);
  if (f.name != nullptr) f.version = current(f.name);
  return f;
}

bool in_group(uint32_t group) {
  if (static_cast<uint32_t>(base::system_call(SYS_getegid)) == group) return true;
  uint32_t groups[64];
  const long n = base::system_call(SYS_getgroups, 64, reinterpret_cast<long>(groups));
  for (long i = 0; i < n; ++i) {
    if (groups[i] == group) return true;
  }
  return false;
}

Result stat(const Place& p, struct stat* to) {
  const Busy hold;
  const Found f = find(p);
  if (!f.there()) return kPass;
  fill_stat(*f.container, f.version, to);
  if (base::load(&f.name->live) != 0) {
    const base::HoldsDescriptor held;
    const long fd = open_live(f.name, O_RDONLY | O_CLOEXEC);
    struct stat live;
    if (!base::failed(fd) && base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&live)) == 0) {
      to->st_size = live.st_size;
      to->st_blocks = (live.st_size + 511) / 512;
      to->st_mode = live.st_mode;
      to->st_mtim = live.st_mtim;
      to->st_ctim = live.st_ctim;
    }
    if (!base::failed(fd)) base::close_fd(static_cast<int>(fd));
  }
  return 0;
}

Result access(const Place& p, int mode) {
  const Busy hold;
  const Found f = find(p);
  if (!f.there()) return kPass;
  return is_allowed(f.version, mode) ? 0 : -EACCES;
}

Result remove(const Place& p) {
  const Busy hold;
  const Found f = find(p);
  return f.there() ? -mark_gone(*f.container, f.name, kAbsent) : kPass;
}

// A copy under the new name, and then no more under the old one.
Result move(Container& c, Name* from, Name* to) {
  const Version v = current(from);
  if (v.state == kPacked) {
    if (v.container != 0) return -EROFS;
    const base::HoldsDescriptor held;
    const long fd =
        base::system_call(SYS_memfd_create, reinterpret_cast<long>("weir-pack"), 1 /* CLOEXEC */);
    if (base::failed(fd)) return fd;
    struct stat about {};
    fill_stat(c, v, &about);
    int error = fetch(c, v, from->bytes, static_cast<int>(fd));
    if (error == 0) error = append(c, to, static_cast<int>(fd), about);
    base::close_fd(static_cast<int>(fd));
    if (error != 0) return -error;
  }
  {
    const LockedName locked(to);
    Version moved = v.state == kPacked ? current(to) : v;
    moved.birth = v.birth;
    publish(to, moved);
    move_live(from, to);
    to->moved_birth = 0;
  }
  from->moved_place = place_of(c.segment, to);
  base::store(&from->moved_birth, v.birth);
  return -mark_gone(c, from, kAbsent);
}

Result rename(const Place& from, const Place& to) {
  const Busy hold;
  const Found f = find(from);
  if (!f.there()) return kPass;
  int error = 0;
  Container* const c = to.spec != nullptr && to.name.size <= kLongestName
                           ? container_of(*to.spec, to.directory, false, &error)
                           : nullptr;
  if (error != 0) return -error;
  if (c != f.container) {
    if (f.version.state != kPacked) return -EBUSY;
    error = make_real(*f.container, f.name);
    return error != 0 ? -error : kPass;
  }
  Name* const n = make_name(c->segment, to.name);
  if (n == nullptr) return -ENOSPC;
  if (n == f.name) return 0;
  if (current(n).state == kReal) {
    char path[sizeof c->path];
    base::Writer(path, sizeof path).add(to.directory).add("/").add(to.name);
    if (const long gone = base::unlink_path(path); base::failed(gone) && gone != -ENOENT)
      return gone;
  }
  return move(*c, f.name, n);
}

void apply(const Change& change, Version* v) {
  switch (change.what) {
    case Change::kMode: v->mode = static_cast<uint16_t>(change.mode & 07777); break;
    case Change::kOwner:
      if (change.user != ~0u) v->user = change.user;
      if (change.group != ~0u) v->group = change.group;
      break;
    case Change::kTimes:
      v->seconds = change.modified.tv_sec;
      v->nanoseconds = static_cast<uint32_t>(change.modified.tv_nsec);
      break;
  }
}

// The open memory, whose mode and times the next close stores.
void apply_live(const Change& change, const Name* n) {
  const base::HoldsDescriptor held;
  const long fd = base::load(&n->live) != 0 ? open_live(n, O_RDONLY | O_CLOEXEC) : -ENOENT;
  if (base::failed(fd)) return;
  const timespec times[2] = {{0, UTIME_OMIT}, change.modified};
  switch (change.what) {
    case Change::kMode: base::system_call(SYS_fchmod, fd, change.mode); break;
    case Change::kOwner: base::system_call(SYS_fchown, fd, change.user, change.group); break;
    case Change::kTimes:
      base::system_call(SYS_utimensat, fd, 0, reinterpret_cast<long>(times), 0);
      break;
  }
  base::close_fd(static_cast<int>(fd));
}

// Busy is held.
Result change_name(Container& c, Name* n, const Change& change) {
  const auto me = static_cast<uint32_t>(base::system_call(SYS_geteuid));
  const Version before = current(n);
  const bool gives = change.what == Change::kOwner && change.user != ~0u && change.user != me;
  if (me != 0 && (me != before.user || gives)) return -EPERM;
  apply_live(change, n);
  const LockedName locked(n);
  Version v = current(n);
  if (v.container != 0) return -EROFS;
  apply(change, &v);
  if (v.state == kPacked) {
    if (const int error = rewrite_record(c, n, v); error != 0) return -error;
  }
  publish(n, v);
  return 0;
}

Result change(const Place& p, const Change& change) {
  const Busy hold;
  const Found f = find(p);
  return f.there() ? change_name(*f.container, f.name, change) : kPass;
}

Result change_open(Layer& l, const Change& change) {
  const Busy hold;
  Container* c = nullptr;
  Name* const n = name_of(l, &c);
  return n != nullptr ? change_name(*c, n, change) : 0;
}

Result truncate(const Place& p, uint64_t bytes) {
  const Busy hold;
  const Found f = find(p);
  if (!f.there()) return kPass;
  if (!is_allowed(f.version, 2)) return -EACCES;
  return truncate_name(*f.container, f.name, bytes);
}

bool is_named(Layer& l, const Place& p) {
  const Busy hold;
  const Found f = find(p);
  Container* c = nullptr;
  return f.name != nullptr && name_of(l, &c) == f.name;
}

Result surrender(const Place& p) {
  const Busy hold;
  const Found f = find(p);
  return f.version.state == kPacked ? -make_real(*f.container, f.name) : kPass;
}

void became(const Place& p, bool real) {
  const Busy hold;
  int error = 0;
  if (p.spec == nullptr || p.name.size > kLongestName) return;
  Container* const c = container_of(*p.spec, p.directory, false, &error);
  if (c == nullptr) return;
  Name* const n = real ? make_name(c->segment, p.name) : find_name(c->segment, p.name);
  if (n == nullptr || (!real && current(n).state != kReal)) return;
  mark_gone(*c, n, kAbsent);
  if (!real) return;
  const LockedName locked(n);
  Version v{};
  v.state = kReal;  // another file than that which may be open
  publish(n, v);
}

Result remove_directory(const Place& p) {
  const Busy hold;
  int error = 0;
  Container* const c = container_of(*p.spec, p.directory, false, &error);
  if (c == nullptr || base::load(&c->segment.shared->has_file) == 0) return kPass;
  Cursor at;
  while (const Name* const n = next_name(c->segment, &at)) {
    const uint8_t is = current(n).state;
    if (is == kPacked || is == kOpened) return kPass;
  }
  if (flush(*c) != 0 || open_file(*c, true) != 0) return kPass;
  base::unlink_path(c->path);
  base::store(&c->segment.shared->has_file, 0u);
  base::fetch_add(&c->segment.shared->file_number, 1u);
  leave(*c);
  return kPass;
}

bool hides(const Place& p) { return kind_of_name(*p.spec, p.name) != 0; }

bool next(Listing* l) {
  const Busy hold;
  int error = 0;
  Container* const c = container_of(*l->place.spec, l->place.directory, false, &error);
  if (c == nullptr) return false;
  Cursor at{static_cast<uint32_t>(l->state[0]), static_cast<uint32_t>(l->state[1])};
  const Name* n;
  while ((n = next_name(c->segment, &at)) != nullptr) {
    const Version v = current(n);
    if (v.state != kPacked && v.state != kOpened) continue;
    struct stat about;
    fill_stat(*c, v, &about);
    memcpy(l->name, n->text, n->bytes);
    l->name[n->bytes] = 0;
    l->inode = about.st_ino;
    break;
  }
  l->state[0] = at.head;
  l->state[1] = at.place;
  return n != nullptr;
}

void directories_moved() {
  const Busy hold;
  forget_paths();
}

void leave_service() {
  const Busy hold;
  leave_all();
}

void forked() {
  base::store(&busy, 0u);
  const Busy hold;
  forget_all();
}

}  // namespace

Result truncate_name(Container& c, Name* n, uint64_t bytes) {
  const base::HoldsDescriptor held;
  const Version v = current(n);
  uint64_t number = 0;
  long fd = open_live(n, O_RDWR | O_CLOEXEC);
  const bool live = !base::failed(fd);
  if (!live) fd = make_memory(O_CLOEXEC, &number);
  if (base::failed(fd)) return fd;
  const int file = static_cast<int>(fd);
  int error = !live && v.state == kPacked && bytes != 0 ? fetch(c, v, n->bytes, file) : 0;
  if (error == 0) error = static_cast<int>(-base::system_call(SYS_ftruncate, fd, bytes));
  struct stat about {};
  base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&about));
  about.st_mode = S_IFREG | v.mode;
  about.st_uid = v.user;
  about.st_gid = v.group;
  if (error == 0) error = append(c, n, file, about);
  base::close_fd(file);
  return -error;
}

bool is_allowed(const Version& v, int mode) {
  const auto me = static_cast<uint32_t>(base::system_call(SYS_geteuid));
  if (me == 0) return (mode & 1) == 0 || (v.mode & 0111) != 0;
  const int shift = me == v.user ? 6 : in_group(v.group) ? 3 : 0;
  return (v.mode >> shift & mode & 7) == (mode & 7);
}

void fill_stat(const Container& c, const Version& v, struct stat* to) {
  *to = {};
  to->st_dev = c.identity.device;
  to->st_ino = (c.identity.number << 40 ^ v.birth) | uint64_t{1} << 62;
  to->st_mode = S_IFREG | v.mode;
  to->st_nlink = 1;
  to->st_uid = v.user;
  to->st_gid = v.group;
  to->st_size = static_cast<off_t>(v.bytes);
  to->st_blksize = 4096;
  to->st_blocks = static_cast<blkcnt_t>((v.bytes + 511) / 512);
  to->st_mtim = {static_cast<time_t>(v.seconds), v.nanoseconds};
  to->st_atim = to->st_ctim = to->st_mtim;
}

Result make_real_file(Layer& l) {
  const int from = l.file->descriptor;
  struct stat about;
  if (base::system_call(SYS_fstat, from, reinterpret_cast<long>(&about)) != 0) return -EBADF;
  Container* c = nullptr;
  Name* const n = name_of(l, &c);
  if (n == nullptr) return -ENOENT;
  char path[sizeof c->path];
  base::Writer(path, sizeof path)
      .add({c->directory, c->directory_bytes}).add("/").add({n->text, n->bytes});
  const long fd = base::open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
                                (about.st_mode & 07777) | 0600);
  if (base::failed(fd)) return fd;
  off_t at = 0;
  long sent = 1;
  while (at < about.st_size && sent > 0)
    sent = base::system_call(SYS_sendfile, fd, from, reinterpret_cast<long>(&at),
                             about.st_size - at);
  base::system_call(SYS_fchmod, fd, about.st_mode & 07777);
  if (at < about.st_size) {
    base::close_fd(static_cast<int>(fd));
    base::unlink_path(path);
    return sent < 0 ? sent : -EIO;
  }
  const int error = current(n).state != kReal ? mark_gone(*c, n, kReal) : 0;
  base::store(&n->live, uint64_t{0});
  return error == 0 ? fd : -error;
}

namespace {

Result make_real_service(Layer& l) {
  const Busy hold;
  return make_real_file(l);
}

void moved(Layer& l, int from, int to) {
  const Busy hold;
  Container* c = nullptr;
  Name* const n = name_of(l, &c);
  if (n == nullptr) return;
  add_live(n, to);
  end_live(n, from);
}

Result stat_open(Layer& l, struct stat* to) {
  const Busy hold;
  Container* c = nullptr;
  const Name* const n = name_of(l, &c);
  if (n == nullptr) return -ENOENT;
  fill_stat(*c, current(n), to);
  return 0;
}

}  // namespace

const stack::NameService kNames{
    .stat = stat, .access = access, .remove = remove, .rename = rename, .change = change,
    .truncate = truncate, .is_named = is_named, .surrender = surrender, .became = became,
    .remove_directory = remove_directory, .hides = hides, .next = next,
    .make_real = make_real_service, .change_open = change_open, .stat_open = stat_open,
    .moved = moved, .store = store, .directories_moved = directories_moved,
    .leave = leave_service, .forked = forked,
};

}  // namespace weir::layers::pack
