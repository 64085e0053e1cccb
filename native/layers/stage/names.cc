// SPDX-License-Identifier: Apache-2.0
// Calls on names of files that a tier has newer than their place. What is equal at both is the
// kernel's under its own name: a copy is compared with its file when it is opened.
#include "layers/stage/names.h"

#include <errno.h>
#include <linux/fs.h>
#include <string.h>

#include "base/scratch.h"

namespace weir::layers::stage {

using namespace weir::stage;
using stack::GivenPath;

const Tier* newer_on(const GivenPath& name, bool follow, Room& room) {
  for (uint32_t i = 0; const Tier* const at = usable_from(i); ++i) {
    const Tier& tier = *at;
    if (!may_have(tier, last_of(name.path)) || !key_of(name.directory, name.path, room.key))
      continue;
    for (int links = 0; links < 8; ++links) {
      weir::stage::find(tier, room.key, &room.found);
      if (is_newer(room.found) && room.found.mark.other[0] != 0) {
        const Lock lock(tier, room.key);
        weir::stage::find(tier, room.key, &room.found);
        settle(tier, room.found);
      }
      if (is_newer(room.found)) return &tier;
      if (!follow || !follow_link(room.key)) break;
    }
  }
  return nullptr;
}

long may_change_beside(const char* key) {
  const Mapped<char[kKeyBytes]> above;
  if (!above) return -ENOMEM;
  const base::Text last = last_of(key);
  base::Writer(*above, kKeyBytes).add({key, static_cast<size_t>(last.data - key)}).add(".");
  return base::system_call(SYS_faccessat, AT_FDCWD, reinterpret_cast<long>(*above), 2 | 1);
}

namespace {

bool find_name(const GivenPath& name, char* to) {
  const Mapped<Room> room;
  if (!room || newer_on(name, name.follow, *room) == nullptr) return false;
  return !base::Writer(to, base::Scratch::kBytes).add(room->found.tree).cut();
}

// A file is the same one by its name and by a descriptor, which reads the tier's copy: programs
// compare (cp, tar).
Result stat_known(const GivenPath& name, bool directories, struct stat* to) {
  const Mapped<Room> room;
  if (!room) return stack::kPass;
  for (uint32_t i = 0; const Tier* const at = usable_from(i); ++i) {
    const Tier& tier = *at;
    if (!may_have(tier, last_of(name.path))) continue;
    const Above above(name.directory, name.path);
    if (!above.key(room->key)) continue;
    weir::stage::find(tier, room->key, &room->found);
    if (directories && !room->found.there && stat_directory(above, room->key, *room, to)) return 0;
    const bool linked = !room->found.there && name.follow && follow_link(room->key);
    if (linked) weir::stage::find(tier, room->key, &room->found);
    if (!room->found.there || is_newer(room->found)) continue;
    if ((linked ? stat_path(room->key, to) : above.about(to)) != 0 ||
        !is_copy_of(room->found.mark, *to))
      continue;
    to->st_dev = room->found.device;
    to->st_ino = room->found.inode;
    to->st_ctim = room->found.changed;
    return 0;
  }
  return stack::kPass;
}

Result stat_copy(const GivenPath& name, struct stat* to) { return stat_known(name, false, to); }

Result stat_any(const GivenPath& name, struct stat* to) { return stat_known(name, true, to); }

// With its lock held: false when it is newer no more.
bool look_again(const Tier& tier, const char* key, Found* found) {
  weir::stage::find(tier, key, found);
  settle(tier, *found);
  return is_newer(*found);
}

bool change(const GivenPath& name, void (*call)(void*, const char*), void* with) {
  const Mapped<Room> room;
  if (!room) return false;
  const Tier* const tier = newer_on(name, name.follow, *room);
  if (tier == nullptr) return false;
  const Lock lock(*tier, room->key);
  if (!lock.held() || !look_again(*tier, room->key, &room->found)) return false;
  room->found.mark.changes = next_generation(*tier);
  write_mark(*tier, room->found.inode, room->found.mark);
  call(with, room->found.tree);
  return true;
}

// The file goes, by the kernel: its copy makes room.
void remove_copy(const GivenPath& name, Room& room) {
  for (uint32_t i = 0; const Tier* const at = usable_from(i); ++i) {
    const Tier& tier = *at;
    if (!may_have(tier, last_of(name.path)) || !key_of(name.directory, name.path, room.key))
      continue;
    const Lock lock(tier, room.key);
    weir::stage::find(tier, room.key, &room.found);
    if (lock.held() && room.found.there && !is_newer(room.found)) drop(tier, room.found);
  }
}

Result remove(const GivenPath& name) {
  const Mapped<Room> room;
  if (!room) return stack::kPass;
  const Tier* const tier = newer_on(name, false, *room);
  if (tier == nullptr) {
    remove_copy(name, *room);
    return stack::kPass;
  }
  const Lock lock(*tier, room->key);
  if (!lock.held() || !look_again(*tier, room->key, &room->found)) return stack::kPass;
  const long removed = base::unlink_path(room->key);
  if (removed != 0 && removed != -ENOENT) return removed;
  drop(*tier, room->found);
  return 0;
}

long rename_in_place(const char* from, const char* to, unsigned flags) {
  return base::system_call(SYS_renameat2, AT_FDCWD, reinterpret_cast<long>(from), AT_FDCWD,
                           reinterpret_cast<long>(to), flags);
}

// As the kernel would look at the new name. *exists: a file is there.
Result check_new_name(const char* key, unsigned flags, bool on_tier, struct stat* real,
                      bool* exists) {
  if (const long may = may_change_beside(key); may != 0) return may;
  const long seen = stat_path(key, real);
  if (seen != 0 && seen != -ENOENT) return seen;
  *exists = seen == 0;
  if ((flags & RENAME_NOREPLACE) != 0 && (*exists || on_tier)) return -EEXIST;
  return *exists && S_ISDIR(real->st_mode) ? -EISDIR : 0;
}

Mode mode_after_renaming(const Mark& mark, const char* key) {
  const rules::LayerSpec* const layer = stack::layer_of_rule(key, kNames);
  if (layer != nullptr) return mode_of(*layer);
  return mark.mode == Mode::kNever ? Mode::kAsync : mark.mode;
}

// The inode of the file that goes is held while its mark goes: its number is nobody else's yet.
long replace_on_tier(const Tier& tier, const Room& room) {
  const base::HoldsDescriptor held;
  const CountChange change(tier);
  const long fd = base::open_at(AT_FDCWD, room.other_found.tree, O_PATH | O_CLOEXEC | O_NOFOLLOW);
  long moved = rename_in_place(room.found.tree, room.other_found.tree, 0);
  // There is no directory at its place.
  if (moved == -EISDIR && remove_in_place(room.other_found.tree) == 0)
    moved = rename_in_place(room.found.tree, room.other_found.tree, 0);
  if (moved == 0 && room.other_found.there) {
    remove_mark(tier, room.other_found.inode);
    if (is_counted(room.other_found.mark)) uncount_bytes(tier, room.other_found.bytes);
  }
  if (!base::failed(fd)) base::close_fd(static_cast<int>(fd));
  return moved;
}

// The tier's name changes first, which is what programs see; `other` in the mark lets whoever finds
// it finish, when this process is killed in between.
Result rename_newer(const Tier& tier, Room& room, unsigned flags) {
  struct stat real;
  bool exists = false;
  const Result checked =
      check_new_name(room.other, flags, is_newer(room.other_found), &real, &exists);
  if (checked == -EISDIR && is_within(room.other, room.key)) return -ENOTEMPTY;
  if (checked != 0) return checked;
  Mark& mark = room.found.mark;
  if (!tree_path(tier, room.other, room.other_found.tree)) return -ENAMETOOLONG;
  if (const Result made = make_above(tier, room.other_found.tree); made != 0) return -EIO;
  remember(tier, room.other);
  memcpy(mark.other, room.other, sizeof mark.other);
  mark.changes = next_generation(tier);
  mark.brought = false;  // under its new name
  if (const Result marked = write_mark(tier, room.found.inode, mark); marked != 0) return marked;
  if (const long moved = replace_on_tier(tier, room); moved != 0) {
    mark.other[0] = 0;
    write_mark(tier, room.found.inode, mark);
    return moved;
  }
  if (mark.real != kNoReal && rename_in_place(room.key, room.other, 0) == 0) exists = true;
  mark.real = exists && stat_path(room.other, &real) == 0 ? real_of(real) : kNoReal;
  // The name leaves a file that has others: publish() is not to write into that one.
  if (mark.real != kNoReal && real.st_nlink > 1) mark.real.device = 0;
  mark.mode = mode_after_renaming(mark, room.other);
  memcpy(mark.key, room.other, sizeof mark.key);
  mark.other[0] = 0;
  return write_mark(tier, room.found.inode, mark);
}

// A file at its place gets the name of one on the tier, whose bytes go.
Result rename_over_newer(const Tier& tier, Room& room, unsigned flags) {
  struct stat about;
  if (const long seen = stat_path(room.key, &about); seen != 0) return seen;
  if ((flags & RENAME_NOREPLACE) != 0) return -EEXIST;
  if (S_ISDIR(about.st_mode)) return -ENOTDIR;
  Mark& mark = room.other_found.mark;
  mark.state = State::kSuperseded;
  memcpy(mark.other, room.key, sizeof mark.other);
  if (const Result marked = write_mark(tier, room.other_found.inode, mark); marked != 0)
    return marked;
  const long renamed = rename_in_place(room.key, room.other, 0);
  if (renamed == 0) {
    drop(tier, room.other_found);
    return 0;
  }
  mark.state = State::kWritten;
  mark.other[0] = 0;
  write_mark(tier, room.other_found.inode, mark);
  return renamed;
}

Result rename_on(const Tier& tier, Room& room, unsigned flags) {
  const Lock lock(tier, room.key, room.other);
  if (!lock.held()) return stack::kPass;
  const bool newer = look_again(tier, room.key, &room.found);
  const bool other_newer = look_again(tier, room.other, &room.other_found);
  if (!newer && !other_newer) return stack::kPass;
  if ((flags & ~static_cast<unsigned>(RENAME_NOREPLACE)) != 0) return -EINVAL;
  if (strcmp(room.key, room.other) == 0) return flags == 0 ? 0 : -EEXIST;
  return newer ? rename_newer(tier, room, flags) : rename_over_newer(tier, room, flags);
}

// Slashes may follow the name of a directory.
base::Text last_name(const char* path) {
  size_t end = strlen(path);
  while (end > 0 && path[end - 1] == '/') --end;
  size_t begin = end;
  while (begin > 0 && path[begin - 1] != '/') --begin;
  return {path + begin, end - begin};
}

// Both names are of files at their place then, which the kernel exchanges.
Result exchange(const GivenPath& from, const GivenPath& to) {
  Result brought = bring_whatever(from);
  if (brought == stack::kPass) brought = bring_whatever(to);
  return brought == -EBUSY || brought == -EAGAIN ? -EINVAL : brought;
}

Result rename(const GivenPath& from, const GivenPath& to, unsigned flags) {
  constexpr unsigned kBoth = RENAME_EXCHANGE | RENAME_NOREPLACE;
  const Mapped<Room> room;
  if (!room || (flags & kBoth) == kBoth) return stack::kPass;  // EINVAL
  for (uint32_t i = 0; const Tier* const at = usable_from(i); ++i) {
    if (!may_have(*at, last_name(from.path)) && !may_have(*at, last_name(to.path))) continue;
    if (flags == RENAME_EXCHANGE) return exchange(from, to);
    if (directory_key(from, room->key) && is_directory(room->key))
      return directory_key(to, room->other) ? rename_directory(room->key, room->other, flags)
                                            : stack::kPass;
    if (!key_of(from.directory, from.path, room->key)) return stack::kPass;
    if (!key_of(to.directory, to.path, room->other)) {
      bring_whatever(from);  // for the kernel to say what is wrong with the new name
      return stack::kPass;
    }
    if (tree_path(*at, room->other, room->found.tree) && is_directory(room->found.tree) &&
        !is_directory(room->other))
      remove_trees(room->other);
    const Result done = rename_on(*at, *room, flags);
    if (done != stack::kPass) return done;
  }
  return stack::kPass;
}

Result bring(const GivenPath& name) {
  const Mapped<Room> room;
  if (!room) return stack::kPass;
  const Tier* const tier = newer_on(name, true, *room);
  if (tier == nullptr) return stack::kPass;
  const Result done = publish(*tier, room->key, kBring);
  return done == -ENOENT ? 0 : done == -EAGAIN ? -EBUSY : done;
}

Result make(const GivenPath& name) {
  const Mapped<Room> room;
  if (!room) return stack::kPass;
  if (newer_on(name, false, *room) != nullptr) return -EEXIST;
  // A symbolic link may lead to a file on a tier.
  for (uint32_t i = 0; const Tier* const at = usable_from(i); ++i) {
    if (key_of(name.directory, name.path, room->key)) remember(*at, room->key);
  }
  return stack::kPass;
}

// What is open to be written when the process is killed by itself (abort) counts as not closed.
Result end_open(stack::Layer& layer, stack::Ending how) {
  if (how != stack::Ending::kAborted && how != stack::Ending::kFiltered) close_staged(layer);
  return 0;
}

}  // namespace

bool hides(const char* name) { return strncmp(name, kUnfinished, strlen(kUnfinished)) == 0; }

bool follow_link(char* key) {
  struct stat about;
  const Mapped<char[2 * kKeyBytes]> whole;
  const Mapped<char[kKeyBytes]> target;
  if (!whole || !target || stat_path(key, &about) != 0 || !S_ISLNK(about.st_mode)) return false;
  const long n = base::read_link(key, *target, kKeyBytes - 1);
  if (base::failed(n)) return false;
  (*target)[n] = 0;
  base::Writer path(*whole, 2 * kKeyBytes);
  if ((*target)[0] != '/') path.add({key, static_cast<size_t>(last_of(key).data - key)});
  return !path.add(*target).cut() && key_of(AT_FDCWD, *whole, key);
}

const stack::NamesOfLayer kNames = {
    .settles = true, .apart = true,
    .begin = begin_tier, .find = find_name, .change_within = change, .stat = stat_copy,
    .stat_any = stat_any,
    .remove = remove, .remove_directory = remove_directory, .rename = rename, .make = make,
    .bring = bring, .list = list, .hides = hides, .end_open = end_open,
};

}  // namespace weir::layers::stage
