// SPDX-License-Identifier: Apache-2.0
// Calls on names of packed files.
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "layers/machinery/stack/in_memory.h"
#include "layers/pack/found_name.h"
#include "layers/pack/place.h"

namespace weir::layers::pack {

using stack::GivenPath;
using stack::kPass;

FoundName find(const Place& p) {
  FoundName f;
  int error = 0;
  if (p.spec == nullptr || p.name.size > kLongestName) return f;
  f.container = container_of(*p.spec, p.directory, false, &error);
  if (f.container == nullptr) return f;
  f.name = find_name(f.container->segment, p.name);
  if (f.name != nullptr) f.version = current(f.name);
  return f;
}

int store_copy(Container& c, const Name* from, const Version& as, Name* to) {
  const base::HoldsDescriptor held;
  const long fd =
      base::system_call(SYS_memfd_create, reinterpret_cast<long>("weir-pack"), 1 /* CLOEXEC */);
  if (base::failed(fd)) return static_cast<int>(-fd);
  struct stat about {};
  fill_stat(c, as, &about);
  int error = fetch(c, as, from->bytes, static_cast<int>(fd));
  if (error == 0) error = append(c, to, static_cast<int>(fd), about);
  base::close_fd(static_cast<int>(fd));
  return error;
}

namespace {

// As the kernel would say of a file of that owner: in a directory with the sticky bit its names
// are its owner's, and the directory's. 0 or an errno.
int may_remove(Container& c, const Version& v) {
  const uint32_t me = own_user().user;
  if (const int error = may_change(c, me); error != 0) return error;
  if (me == 0 || me == v.user) return 0;
  struct stat about;
  const long seen =
      base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(c.directory),
                        reinterpret_cast<long>(&about), 0);
  if (seen != 0) return static_cast<int>(-seen);
  return (about.st_mode & S_ISVTX) != 0 && about.st_uid != me ? EPERM : 0;
}

Result remove(const GivenPath& p) {
  const Busy hold;
  const FoundName f = find(p);
  if (!f.there()) return kPass;
  if (const int error = may_remove(*f.container, f.version); error != 0) return -error;
  return -mark_gone(*f.container, f.name, kAbsent);
}

// A copy under the new name, and then no more under the old one.
Result move(Container& c, Name* from, Name* to) {
  const Version v = current(from);
  if (v.state == kPacked) {
    if (v.container != 0) return -EROFS;
    if (const int error = store_copy(c, from, v, to); error != 0) return -error;
  }
  {
    const LockedName locked(from);
    if (const int error = settle_live(c, from); error != 0) return -error;
  }
  {
    const LockedName locked(to);
    if (const int error = settle_live(c, to); error != 0) return -error;
    Version moved = v.state == kPacked ? current(to) : v;
    moved.birth = v.birth;
    publish(to, moved);
    move_live(from, to);
  }
  from->moved_place = place_of(c.segment, to);
  base::store(&from->moved_birth, v.birth);
  return -mark_gone(c, from, kAbsent);
}

// What is open first, by whatever process; openings of this one follow at once.
Result bring(const GivenPath& path) {
  const auto is_name = [](Layer& l, const void* with) {
    const Busy hold;
    Container* c = nullptr;
    return name_of(l, &c) == with;
  };
  FoundName f;
  {
    const Busy hold;
    f = find(path);
    if (!f.there()) return kPass;
    Result made = -EAGAIN;
    while (made == -EAGAIN) {
      made = base::load(&f.name->live) != 0 ? make_live_real(*f.container, f.name) : -ENOENT;
      if (made == -EAGAIN) continue;
      const bool is_stored = current(f.name).state != kOpened;
      if (made < 0) made = is_stored ? -make_real(*f.container, f.name) : -EBUSY;
    }
    if (made < 0) return made;
  }
  stack::make_real_where(kNames, is_name, f.name, stack::Reason::kUnsupported);
  return 0;
}

// Within the container. Busy is held.
Result rename_within(const FoundName& f, const Place& to, bool replaces) {
  Name* const n = make_name(f.container->segment, to.name);
  if (n == nullptr) return -ENOSPC;
  if (current(n).state == kAbsent) look_again(*f.container);
  const Version other = current(n);
  if (!replaces && other.state != kAbsent) return -EEXIST;
  if (n == f.name) return 0;
  if (const int error = may_remove(*f.container, f.version); error != 0) return -error;
  if (other.state == kPacked || other.state == kOpened) {
    if (const int error = may_remove(*f.container, other); error != 0) return -error;
  }
  if (other.state == kReal) {
    char path[sizeof f.container->path];
    path_in(*f.container, to.name, path, sizeof path);
    if (const long gone = base::unlink_path(path); base::failed(gone) && gone != -ENOENT)
      return gone;
    if (const int error = mark_gone(*f.container, n, kAbsent); error != 0) return -error;
  }
  return move(*f.container, f.name, n);
}

constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE, as mv gives it

// A real file that was memory gets another name in the directory: openings of other processes,
// which have not followed yet, find it there. Busy is held.
Result rename_real(const FoundName& f, const Place& to, const GivenPath& from,
                   const GivenPath& new_path, unsigned flags) {
  Container& c = *f.container;
  Name* const n = make_name(c.segment, to.name);
  if (n == nullptr || n == f.name) return kPass;
  const Version other = current(n);
  const bool replaces = other.state == kPacked || other.state == kOpened;
  if (replaces && (flags & kNoReplace) != 0) return -EEXIST;
  if (replaces && other.container != 0) return -EROFS;
  const long done = base::system_call(
      SYS_renameat2, from.directory, reinterpret_cast<long>(from.path), new_path.directory,
      reinterpret_cast<long>(new_path.path), flags);
  if (done != 0) return done;
  struct stat about;
  const bool are_one =
      base::system_call(SYS_newfstatat, from.directory, reinterpret_cast<long>(from.path),
                        reinterpret_cast<long>(&about), AT_SYMLINK_NOFOLLOW) == 0;
  if (are_one) return 0;  // two names of one file, which both stay
  if (replaces) mark_gone(c, n, kAbsent);
  {
    const LockedName locked(n);
    publish(n, f.version);
  }
  f.name->moved_place = place_of(c.segment, n);
  base::store(&f.name->moved_birth, f.version.birth);
  return -mark_gone(c, f.name, kAbsent);
}

bool is_packed(const GivenPath& path) {
  const Busy hold;
  return find(path).there();
}

bool is_directory(const GivenPath& path) {
  struct stat about;
  return base::system_call(SYS_newfstatat, path.directory, reinterpret_cast<long>(path.path),
                           reinterpret_cast<long>(&about), AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(about.st_mode);
}

// A file that gets a name elsewhere becomes a real one, and the kernel renames it.
Result rename(const GivenPath& from, const GivenPath& to, unsigned flags) {
  const PlaceOf other(to);
  bool within = false;
  {
    const Busy hold;
    const FoundName f = find(from);
    const Place& place = other.place;
    const bool was_memory = f.version.state == kReal && f.version.birth != 0;
    if ((f.there() || was_memory) && (flags & ~kNoReplace) == 0 && place.spec != nullptr &&
        place.name.size <= kLongestName) {
      int error = 0;
      within = container_of(*place.spec, place.directory, false, &error) == f.container;
      // ENOMEM: what is made there is a real file, as where there are too many directories.
      if (error != 0 && error != ENOMEM) return -error;
    }
    if (within && was_memory) {
      if (const Result r = rename_real(f, place, from, to, flags); r != kPass) return r;
    } else if (within) {
      return rename_within(f, place, (flags & kNoReplace) == 0);
    }
  }
  Result r = bring(from);
  if (r == kPass && is_packed(to) && is_directory(from)) return -ENOTDIR;
  if ((r == kPass || r == 0) && flags != 0) r = bring(to);
  return r == 0 ? kPass : r;
}

Result make(const GivenPath& path) {
  const Busy hold;
  return find(path).there() ? -EEXIST : kPass;
}

void become(const GivenPath& path, bool real, bool is_same = false) {
  const PlaceOf at(path);
  const Place& p = at.place;
  const Busy hold;
  int error = 0;
  if (p.spec == nullptr || p.name.size > kLongestName) return;
  Container* const c = container_of(*p.spec, p.directory, false, &error);
  if (c == nullptr) return;
  Name* const n = real ? make_name(c->segment, p.name) : find_name(c->segment, p.name);
  if (n == nullptr || (!real && current(n).state != kReal)) return;
  if (is_same && current(n).state == kReal) return;
  mark_gone(*c, n, kAbsent);
  if (!real) return;
  const LockedName locked(n);
  Version v{};
  v.state = kReal;  // another file than that which may be open
  publish(n, v);
}

}  // namespace

void note_real(const GivenPath& path) { become(path, true, true); }

Result opened(const GivenPath& path, int flags) {
  Version before;
  {
    const Busy hold;
    before = find(path).version;
  }
  const Result brought = bring(path);
  if (brought == kPass) note_real(path);
  if (brought != 0) return brought;
  if (const Result no = not_allowed(before, flags); no != 0) return no;
  return (flags & O_TRUNC) != 0
             ? base::system_call(SYS_truncate, reinterpret_cast<long>(path.path), 0)
             : 0;
}

namespace {

constinit bool directory_goes = false;  // the kernel is about to be asked

void made(const GivenPath& path) { become(path, true); }

void removed(const GivenPath& path) {
  become(path, false);
  if (base::exchange(&directory_goes, false)) moved_directories(true);
}

// The container of a directory that has nothing else goes with it. Busy is held.
void remove_empty(Container& c) {
  if (base::load(&c.segment.shared->has_file) == 0) return;
  Cursor at;
  while (const Name* const n = next_name(c.segment, &at)) {
    const uint8_t is = current(n).state;
    if (is == kPacked || is == kOpened) return;
  }
  if (flush(c) != 0 || open_file(c, true) != 0) return;
  base::unlink_path(c.path);
  base::store(&c.segment.shared->has_file, 0u);
  base::fetch_add(&c.segment.shared->file_number, 1u);
  forget_path(c);
}

// Whether a rule before that of `spec` has the same container.
bool is_of_earlier_rule(const rules::LayerSpec* spec) {
  base::Text name, other;
  rules::option_text(*spec, "name", &name);
  const rules::LayerSpec* earlier = nullptr;
  while (stack::next_layer_of_rules(kNames, &earlier) && earlier != spec) {
    if (rules::option_text(*earlier, "name", &other) && other.size == name.size &&
        memcmp(other.data, name.data, name.size) == 0)
      return true;
  }
  return false;
}

// each(container) once for each that rules have in the directory. Busy is held.
template <typename Each>
void for_each_container(base::Text directory, Each each) {
  const rules::LayerSpec* spec = nullptr;
  while (stack::next_layer_of_rules(kNames, &spec)) {
    int error = 0;
    if (is_of_earlier_rule(spec)) continue;
    if (Container* const c = container_of(*spec, directory, false, &error); c != nullptr) each(*c);
  }
}

Result remove_directory(const GivenPath& path) {
  const base::Scratch room;
  base::Text directory;
  if (!stack::find_directory(path, room.data(), &directory))
    return is_packed(path) ? -ENOTDIR : kPass;
  const Busy hold;
  for_each_container(directory, remove_empty);
  forget_directory(directory);
  base::store(&directory_goes, true);
  return kPass;
}

bool hides(const char* name) {
  const rules::LayerSpec* spec = nullptr;
  while (stack::next_layer_of_rules(kNames, &spec)) {
    if (kind_of_name(*spec, base::text(name)) != 0) return true;
  }
  return false;
}

void list(int fd, bool (*each)(void* with, const char* name, uint64_t inode), void* with) {
  const base::Scratch room;
  base::Text directory;
  if (!stack::find_directory(fd, room.data(), &directory)) return;
  const Busy hold;
  for_each_container(directory, [&](Container& c) {
    Cursor at;
    while (const Name* const n = next_name(c.segment, &at)) {
      const Version v = current(n);
      if (v.state != kPacked && v.state != kOpened) continue;
      struct stat about;
      fill_stat(c, v, &about);
      if (!each(with, n->text, about.st_ino)) return;
    }
  });
}

void directories_moved() {
  const Busy hold;
  forget_paths();
  moved_directories(true);
}

void end() {
  const Busy hold;
  leave_all();
}

void forked() {
  const Busy hold;
  forget_all();
  forget_memory();
}

void moved(Layer& l, int from, int to) {
  const Busy hold;
  Container* c = nullptr;
  Name* const n = name_of(l, &c);
  if (n == nullptr) return;
  add_live(c->segment, n, to);
  end_live(c->segment, n, from, 0);
}

bool passes(const rules::LayerSpec& spec, const char* path) {
  const char* const slash = strrchr(path, '/');
  return is_left_alone(spec, {path, slash == path ? 1 : static_cast<size_t>(slash - path)});
}

// What is open to be written is stored.
Result end_open(Layer& l, stack::Ending how) {
  stack::File* const f = l.file;
  follow_real(l);
  if (!f->in_memory || (f->flags & O_ACCMODE) == O_RDONLY) return 0;
  f->syncs |= how == stack::Ending::kExit;  // what comes later is stored at once
  return store(l);
}

}  // namespace

const stack::NamesOfLayer kNames{
    .passes = passes,
    .stat = stat, .stat_any = stat_any, .access = access, .change = change, .truncate = truncate,
    .remove = remove,
    .remove_directory = remove_directory, .rename = rename, .make = make, .bring = bring,
    .made = made, .removed = removed, .directories_moved = directories_moved, .opened = opened,
    .list = list,
    .hides = hides, .end_open = end_open, .end = end, .forked = forked,
    .make_real = make_open_real, .is_large = is_large, .change_open = change_open,
    .stat_open = stat_open, .moved = moved, .settle = settle, .follow = follow_real,
    .is_memory = is_any_memory,
};

}  // namespace weir::layers::pack
