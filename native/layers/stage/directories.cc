// SPDX-License-Identifier: Apache-2.0
// Calls on directories. They are the kernel's; a tier has directories for the files on it alone,
// which are no directory's of programs.
#include <errno.h>
#include <linux/fs.h>
#include <string.h>

#include "layers/stage/names.h"

namespace weir::layers::stage {

using namespace weir::stage;
using stack::GivenPath;

namespace {

struct Walk {
  const Tier* tier;
  const char* directory;  // of the tree
  bool any;
  Result result;
  bool (*each)(void* with, const char* name, uint64_t inode);
  void* with;
};

// A file of a directory of the tree, looked at without its lock.
bool see_newer(void* with, const char* name) {
  Walk& walk = *static_cast<Walk*>(with);
  const Mapped<Found> found;
  struct stat about;
  if (!found) return true;
  base::Writer path(found->tree, sizeof found->tree);
  if (path.add(walk.directory).add("/").add(name).cut() ||
      stat_path(found->tree, &about) != 0 || !S_ISREG(about.st_mode) ||
      read_mark(*walk.tier, about.st_ino, &found->mark) != 0 ||
      found->mark.state == State::kCopy)
    return true;
  walk.any = true;
  if (walk.each == nullptr) return false;
  return found->mark.real != kNoReal || walk.each(walk.with, name, about.st_ino);
}

// Publishes all that is newer below a directory of the tree.
bool bring_one(void* with, const char* name) {
  Walk& walk = *static_cast<Walk*>(with);
  const Mapped<char[kPathBytes]> path;
  struct stat about;
  if (!path || base::Writer(*path, kPathBytes).add(walk.directory).add("/").add(name).cut() ||
      stat_path(*path, &about) != 0)
    return true;
  if (S_ISDIR(about.st_mode)) {
    Walk below{walk.tier, *path, false, 0, nullptr, nullptr};
    for_each_name(*path, bring_one, &below);
    walk.result = below.result;
  } else {
    const Result done = publish(*walk.tier, *path + walk.tier->length + strlen("/tree"),
                                kBring);
    if (done != 0 && done != -ENOENT) walk.result = done == -EAGAIN ? -EBUSY : done;
  }
  return walk.result == 0;
}

// Of a directory without other files of the tier: nobody waits for it any more.
bool remove_unfinished(void* with, const char* name) {
  const auto& walk = *static_cast<Walk*>(with);
  const Mapped<char[kPathBytes]> path;
  if (path && hides(name) &&
      !base::Writer(*path, kPathBytes).add(walk.directory).add("/").add(name).cut())
    base::unlink_path(*path);
  return true;
}

// What a tier has of a directory that is gone at its place, but for what is newer there.
bool drop_copies(void* with, const char* name) {
  const auto& walk = *static_cast<Walk*>(with);
  const Mapped<char[kPathBytes]> path;
  const Mapped<Found> found;
  if (!path || !found ||
      base::Writer(*path, kPathBytes).add(walk.directory).add("/").add(name).cut())
    return true;
  if (is_directory(*path)) {
    Walk below{walk.tier, *path, false, 0, nullptr, nullptr};
    for_each_name(*path, drop_copies, &below);
    remove_in_place(*path);
    return true;
  }
  const char* const key = *path + walk.tier->length + strlen("/tree");
  const Lock lock(*walk.tier, key);
  weir::stage::find(*walk.tier, key, &*found);
  if (lock.held() && found->there && !is_newer(*found)) drop(*walk.tier, *found);
  return true;
}

// Whether programs see a file in the directory that is newer on a tier. *any: a tier has something
// of the directory.
bool has_newer(const char* key, Room& room, bool* any) {
  for (uint32_t i = 0; const Tier* const at = usable_from(i); ++i) {
    Walk walk{at, room.found.tree, false, 0, nullptr, nullptr};
    if (!tree_path(*at, key, room.found.tree) || !is_directory(room.found.tree)) continue;
    *any = true;
    for_each_name(room.found.tree, see_newer, &walk);
    if (walk.any) return true;
  }
  return false;
}

Result bring_below(const char* key, Room& room) {
  for (uint32_t i = 0; const Tier* const at = usable_from(i); ++i) {
    Walk walk{at, room.found.tree, false, 0, nullptr, nullptr};
    if (!tree_path(*at, key, room.found.tree) || !is_directory(room.found.tree)) continue;
    for_each_name(room.found.tree, bring_one, &walk);
    if (walk.result != 0) return walk.result;
  }
  return stack::kPass;
}

bool is_later(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

// What the kernel would say of the new name if it saw what is newer on a tier; kPass: the same as
// it says without. Checks that it makes before come before here, too.
Result check_new_directory(const char* key, const char* other, unsigned flags, Room& room) {
  struct stat is, was;
  if (is_within(key, other) || may_change_beside(key) != 0 || may_change_beside(other) != 0 ||
      stat_path(key, &is) != 0)
    return stack::kPass;
  const long seen = stat_path(other, &was);
  if ((seen == 0 && was.st_dev != is.st_dev) || (seen != 0 && seen != -ENOENT))
    return stack::kPass;
  const bool stays = (flags & RENAME_NOREPLACE) != 0;
  bool any = false;
  if (newer_on({AT_FDCWD, other, false}, false, room) != nullptr)
    return stays ? -EEXIST : -ENOTDIR;
  return seen == 0 && !stays && S_ISDIR(was.st_mode) && has_newer(other, room, &any)
             ? -ENOTEMPTY
             : stack::kPass;
}

}  // namespace

// The path of a directory without slashes at its end.
bool directory_key(const GivenPath& name, char* key) {
  const Mapped<char[kKeyBytes]> bare;
  if (!bare) return false;
  base::Writer writer(*bare, kKeyBytes);
  if (writer.add(name.path).cut()) return false;
  for (size_t n = writer.view().size; n > 1 && (*bare)[n - 1] == '/';) (*bare)[--n] = 0;
  return key_of(name.directory, *bare, key);
}

bool is_directory(const char* path) {
  struct stat about;
  return stat_path(path, &about) == 0 && S_ISDIR(about.st_mode);
}

void remove_trees(const char* key) {
  const Mapped<char[kPathBytes]> tree;
  if (!tree) return;
  for (uint32_t i = 0; const Tier* const at = usable_from(i); ++i) {
    Walk walk{at, *tree, false, 0, nullptr, nullptr};
    if (!tree_path(*at, key, *tree) || !is_directory(*tree)) continue;
    for_each_name(*tree, drop_copies, &walk);
    remove_in_place(*tree);
  }
}

Result remove_directory(const GivenPath& name) {
  const Mapped<Room> room;
  if (!room) return stack::kPass;
  if (newer_on(name, false, *room) != nullptr) return -ENOTDIR;
  if (!directory_key(name, room->key)) return stack::kPass;
  bool any = false;
  if (has_newer(room->key, *room, &any)) return -ENOTEMPTY;
  if (!any) return stack::kPass;
  long removed = remove_in_place(room->key);
  if (removed == -ENOTEMPTY) {
    Walk walk{nullptr, room->key, false, 0, nullptr, nullptr};
    for_each_name(room->key, remove_unfinished, &walk);
    removed = remove_in_place(room->key);
  }
  if (removed == 0) remove_trees(room->key);
  return removed;
}

Result rename_directory(const char* key, const char* other, unsigned flags) {
  const Mapped<Room> room;
  if (!room) return -ENOMEM;
  const Result checked = check_new_directory(key, other, flags, *room);
  return checked != stack::kPass ? checked : bring_below(key, *room);
}

Result bring_whatever(const GivenPath& name) {
  const Mapped<Room> room;
  if (!room) return -ENOMEM;
  if (directory_key(name, room->other) && is_directory(room->other))
    return bring_below(room->other, *room);
  const Tier* const tier = newer_on(name, false, *room);
  if (tier == nullptr) return stack::kPass;
  const Result done = publish(*tier, room->key, kBring);
  return done == 0 || done == -ENOENT ? stack::kPass : done;
}

bool stat_directory(const Above& above, const char* key, Room& room, struct stat* to) {
  struct stat about;
  timespec newest{};
  bool any = false;
  for (uint32_t i = 0; const Tier* const at = usable_from(i); ++i) {
    if (!tree_path(*at, key, room.found.tree) || stat_path(room.found.tree, &about) != 0 ||
        !S_ISDIR(about.st_mode))
      continue;
    any = true;
    if (is_later(about.st_mtim, newest)) newest = about.st_mtim;
  }
  if (!any || above.about(to) != 0 || !S_ISDIR(to->st_mode)) return false;
  if (is_later(newest, to->st_mtim) && is_later(newest, to->st_ctim)) to->st_mtim = newest;
  return true;
}

void list(int directory, bool (*each)(void* with, const char* name, uint64_t inode), void* with) {
  const Mapped<Room> room;
  const Mapped<char[kKeyBytes]> link;
  if (!room || !link) return;
  base::Writer(*link, kKeyBytes)
      .add("/proc/self/fd/")
      .add_number(static_cast<uint64_t>(directory));
  const long n = base::read_link(*link, room->key, sizeof room->key - 1);
  if (base::failed(n)) return;
  room->key[n] = 0;
  for (uint32_t i = 0; const Tier* const at = usable_from(i); ++i) {
    Walk walk{at, room->found.tree, false, 0, each, with};
    if (tree_path(*at, room->key, room->found.tree) && is_directory(room->found.tree))
      for_each_name(room->found.tree, see_newer, &walk);
  }
}

}  // namespace weir::layers::stage
