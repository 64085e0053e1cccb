// SPDX-License-Identifier: Apache-2.0
// Layer stage: decides at the open where a file is, and leaves the descriptor to the kernel. What
// is on a tier, and when it goes to its place: tier.h; names: names.cc.
#include "layers/stage/declared.h"

#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "layers/machinery/node/place.h"
#include "layers/machinery/stack/carried_locks.h"
#include "layers/machinery/stack/file.h"
#include "layers/machinery/stack/loadable.h"
#include "layers/machinery/stack/table.h"
#include "layers/stage/names.h"
#include "layers/stage/state.h"

namespace weir::layers {
namespace {

using namespace stack;
using namespace stage_declared;
namespace tiers = weir::stage;
using stage::state;
using stage::State;
using tiers::Above;
using tiers::Found;
using tiers::Lock;
using tiers::Mapped;
using tiers::Tier;

struct Room {
  char key[tiers::kKeyBytes];
  Found found;
  struct stat real;
};

constexpr Result kAtPlace = -4096;  // no errno: the file is opened where it is
constexpr Result kLinked = -4097;   // the key is where a symbolic link leads

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

// The file on the tier instead of the one at its place.
Result open_on_tier(Layer& layer, const Tier& tier, const Opening& o, const char* tree, int flags) {
  Opening there = o;
  there.directory = AT_FDCWD;
  there.path = tree;
  there.flags = (flags & ~(O_NOFOLLOW | O_NONBLOCK)) | O_NOFOLLOW;
  if ((flags & O_TRUNC) != 0) settle(AT_FDCWD, tree);  // who else holds bytes of it
  const Result fd = open_below(layer, there);
  struct stat about;
  if (fd < 0 || tiers::stat_fd(static_cast<int>(fd), &about) != 0) return fd;
  State& s = state(layer);
  s.tier = &tier;
  s.inode = about.st_ino;
  s.writes = writes(flags);
  s.process = base::process_id();
  return fd;
}

Result open_in_place(Layer& layer, Opening& o) {
  if ((o.flags & O_TRUNC) != 0) settle(o.directory, o.path);
  if (writes(o.flags)) base::fetch_add(&layer.statistics[kInPlace], uint64_t{1});
  return open_below(layer, o);
}

Result no_room(Layer& layer) {
  note_bypass(layer, Reason::kTierFull);
  return kAtPlace;
}

bool is_copy(const Found& found) { return found.mark.state == tiers::State::kCopy; }

// A copy is read while the file at its place is what was copied. *real: that one, for a copy.
bool is_valid(const Found& found, const Above& above, struct stat* real) {
  return found.there &&
         (!is_copy(found) || (above.about(real) == 0 && tiers::is_copy_of(found.mark, *real)));
}

bool has_attributes(const Found& found, const struct stat& real) {
  return found.mode == (real.st_mode & 07777) && found.user == real.st_uid &&
         found.group == real.st_gid;
}

// Calls on the name of a file that has a copy change the file at its place. The copy follows before
// it is opened, so that the kernel permits what it would there, and before it becomes newer: then
// its attributes are the file's. With the name's lock held. An owner that may not be given stays.
void take_attributes(const Found& found, const struct stat& real) {
  if (has_attributes(found, real)) return;
  const auto tree = reinterpret_cast<long>(found.tree);
  if (found.user != real.st_uid || found.group != real.st_gid)
    base::system_call(SYS_fchownat, AT_FDCWD, tree, real.st_uid, real.st_gid, AT_SYMLINK_NOFOLLOW);
  base::system_call(SYS_fchmodat, AT_FDCWD, tree, real.st_mode & 07777);
}

void renew_copy(const Tier& tier, const struct stat& real, Room& room) {
  const Lock lock(tier, room.key);
  tiers::find(tier, room.key, &room.found);
  if (lock.held() && room.found.there && is_copy(room.found)) take_attributes(room.found, real);
}

Result open_to_read(Layer& layer, const Opening& o, const Tier& tier, const Above& above,
                    Room& room) {
  tiers::find(tier, room.key, &room.found);
  if (!room.found.there) {
    const bool follow = (o.flags & O_NOFOLLOW) == 0;
    return follow && stage::follow_link(room.key) ? kLinked : kAtPlace;
  }
  if (!is_valid(room.found, above, &room.real)) return kAtPlace;
  if (is_copy(room.found) && !has_attributes(room.found, room.real))
    renew_copy(tier, room.real, room);
  const Result fd = open_on_tier(layer, tier, o, room.found.tree, o.flags);
  if (fd == -ENOENT) return kAtPlace;  // it went to its place meanwhile
  if (fd >= 0) base::fetch_add(&layer.statistics[kFromTier], uint64_t{1});
  return fd;
}

// The mark comes first: from then on the bytes at the place are the older ones.
Result open_again(Layer& layer, const Opening& o, const Tier& tier, Room& room) {
  if ((o.flags & O_CREAT) != 0 && (o.flags & O_EXCL) != 0) return -EEXIST;
  tiers::Mark& mark = room.found.mark;
  if (is_copy(room.found)) take_attributes(room.found, room.real);
  const bool was_counted = tiers::is_counted(mark);
  const tiers::CountChange change(tier);
  mark.state = tiers::State::kWritten;
  mark.mode = state(layer).mode;
  mark.closed = false;
  mark.generation = state(layer).generation = tiers::next_generation(tier);
  mark.run = node::run_number();
  if (const Result marked = tiers::write_mark(tier, room.found.inode, mark); marked != 0)
    return marked;
  if (was_counted) tiers::uncount_bytes(tier, room.found.bytes);
  return open_on_tier(layer, tier, o, room.found.tree, o.flags & ~O_CREAT);
}

Result make_on_tier(Layer& layer, const Opening& o, const Tier& tier, Room& room, bool exists) {
  tiers::Mark& mark = room.found.mark;
  const unsigned mode = exists ? room.real.st_mode & 07777 : o.mode;
  if ((mode & 0400) == 0) return kAtPlace;  // nobody could read it to copy it
  if (!tiers::tree_path(tier, room.key, room.found.tree)) return kAtPlace;
  if (tiers::make_above(tier, room.found.tree) != 0) return no_room(layer);
  base::unlink_path(room.found.tree);  // a copy that is not valid, or of a process that was killed
  tiers::remember(tier, room.key);
  Opening there = o;
  there.mode = mode;
  const Result fd = open_on_tier(layer, tier, there, room.found.tree, o.flags | O_CREAT);
  if (fd < 0) return no_room(layer);
  if (exists) base::system_call(SYS_fchmod, fd, mode);
  mark = {};
  mark.state = tiers::State::kWritten;
  mark.mode = state(layer).mode;
  mark.generation = state(layer).generation = tiers::next_generation(tier);
  mark.run = node::run_number();
  mark.real = exists ? tiers::real_of(room.real) : tiers::kNoReal;
  memcpy(mark.key, room.key, strlen(room.key) + 1);
  if (tiers::write_mark(tier, state(layer).inode, mark) == 0) return fd;
  base::unlink_path(room.found.tree);
  base::close_fd(static_cast<int>(fd));
  state(layer).tier = nullptr;
  return no_room(layer);
}

// Whether the open would make, or empty, a regular file that nobody knows by another name.
bool would_make(const Opening& o, const Above& above, const Room& room, bool exists) {
  if (!exists) return (o.flags & O_CREAT) != 0 && above.may_make(room.key);
  if ((o.flags & O_CREAT) != 0 && (o.flags & O_EXCL) != 0) return false;
  return S_ISREG(room.real.st_mode) && room.real.st_nlink == 1 &&
         ((o.flags & O_TRUNC) != 0 || room.real.st_size == 0) && above.may_write() &&
         above.may_make(room.key);
}

// A file at its place is asked for once; of one that is newer on the tier nothing is asked.
Result open_to_write(Layer& layer, const Opening& o, const Tier& tier, const Above& above,
                     Room& room) {
  const Lock lock(tier, room.key);
  if (!lock.held()) return kAtPlace;
  tiers::find(tier, room.key, &room.found);
  tiers::settle(tier, room.found);
  const bool valid = is_valid(room.found, above, &room.real);
  if (valid && (tiers::is_newer(room.found) || !tiers::is_full(tier)))
    return open_again(layer, o, tier, room);
  if (room.found.there) tiers::drop(tier, room.found);
  const long seen = above.about(&room.real);
  if (seen == 0 && S_ISLNK(room.real.st_mode)) {
    const bool follows = (o.flags & O_NOFOLLOW) == 0 &&
                         (o.flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    return follows && stage::follow_link(room.key) ? kLinked : kAtPlace;
  }
  if ((seen != 0 && seen != -ENOENT) || !would_make(o, above, room, seen == 0)) return kAtPlace;
  return tiers::is_full(tier) ? no_room(layer) : make_on_tier(layer, o, tier, room, seen == 0);
}

Result create(Layer& layer) {
  state(layer).mode = stage::mode_of(*layer.spec);
  return 0;
}

bool wants_drained_sync(const Layer& layer) {
  base::Text how;
  return rules::option_text(*layer.spec, "fsync", &how) && rules::is(how, "drain");
}

bool is_read(const Opening& o) { return !writes(o.flags) && (o.flags & O_TRUNC) == 0; }

// The directory of the file is open within this function alone: an open in place may wait.
Result open_staged(Layer& layer, const Opening& o, const Tier& tier) {
  const Mapped<Room> room;
  if (!room) return kAtPlace;
  Result fd = kLinked;
  for (int links = 0; fd == kLinked && links < 8; ++links) {
    const Mapped<char[tiers::kKeyBytes]> path;
    if (!path || base::Writer(*path, tiers::kKeyBytes).add(links == 0 ? o.path : room->key).cut())
      return kAtPlace;
    const Above above(links == 0 ? o.directory : AT_FDCWD, *path);
    if (!above.key(room->key)) return kAtPlace;
    fd = is_read(o) ? open_to_read(layer, o, tier, above, *room)
                    : open_to_write(layer, o, tier, above, *room);
    if (fd == kLinked && !is_read(o)) tiers::remember(tier, *path);
  }
  return fd == kLinked ? kAtPlace : fd;
}

// An open that is the place's own: what the tier has newer goes there first. A file that is being
// written stays on the tier, which may be one that knows no O_DIRECT, and is opened there.
Result open_own(Layer& layer, Opening& o, const Tier& tier) {
  const Result brought = stage::kNames.bring({o.directory, o.path, (o.flags & O_NOFOLLOW) == 0});
  if (brought != -EBUSY) return kAtPlace;
  Opening there = o;
  there.flags &= ~O_DIRECT;
  return open_staged(layer, there, tier);
}

Result open(Layer& layer, Opening& o) {
  const Tier* const tier = stage::tier_of(*layer.spec, !is_read(o));
  if (tier == nullptr && !(is_read(o) && stage::may_come(*layer.spec)))
    note_bypass(layer, Reason::kNoTier);
  const bool own = (o.flags & O_DIRECT) != 0 || (stack::has_own_calls() && !is_read(o)) ||
                   ((o.flags & O_DSYNC) != 0 && wants_drained_sync(layer));
  const bool may_have = tier != nullptr && tiers::may_have(*tier, tiers::last_of(o.path));
  if (tier == nullptr || ((is_read(o) || own) && !may_have)) return open_in_place(layer, o);
  const Result fd = own ? open_own(layer, o, *tier) : open_staged(layer, o, *tier);
  if (fd == kAtPlace) return open_in_place(layer, o);
  if (fd < 0 || is_read(o)) return fd;
  base::fetch_add(&layer.statistics[kStaged], uint64_t{1});
  stage::start_daemon(*tier);
  return fd;
}

// The bytes that are there now go to the file's place; they are newer still while the file is open
// to be written.
Result publish_open(Layer& layer) {
  const State& s = state(layer);
  const Mapped<tiers::Mark> mark;
  if (!mark) return -ENOSPC;
  const bool compares = base::load(&s.tier->control->compares) != 0;
  const tiers::Publishing how{false, true, false, compares, nullptr, nullptr};
  for (int tries = 0; tries < 100; ++tries) {
    if (tiers::read_mark(*s.tier, s.inode, &*mark) != 0) return 0;  // it has no name any more
    if (mark->state == tiers::State::kCopy) return 0;
    const Result published = tiers::publish(*s.tier, mark->key, how);
    if (published == 0) base::fetch_add(&layer.statistics[kPublished], uint64_t{1});
    if (published == -EAGAIN || published == -ENOENT) continue;
    return published == -ENOSPC || published == -EDQUOT || published == 0 ? published : -EIO;
  }
  return -EIO;
}

Result sync(Layer& layer, bool data_only) {
  const Result synced = sync_below(layer, data_only);
  const State& s = state(layer);
  if (synced != 0 || s.tier == nullptr || !s.writes || !wants_drained_sync(layer)) return synced;
  const CarriedLocks locks(layer.file->descriptor);  // the copy is made by descriptors of its own
  const Result published = publish_open(layer);
  locks.set_again();
  return published;
}

}  // namespace

void stage::close_staged(Layer& layer) {
  const State& s = state(layer);
  struct stat about;
  if (s.tier == nullptr || !s.writes || s.process != base::process_id()) return;
  const bool is_known =
      tiers::stat_fd(layer.file->descriptor, &about) == 0 && about.st_ino == s.inode;
  tiers::note_closed(*s.tier, s.inode, s.generation,
                     is_known ? static_cast<uint64_t>(about.st_size) : 0);
}

namespace {

// Of a descriptor for writing alone another one is opened to look.
bool is_to_be_loaded(Layer& layer) {
  const State& s = state(layer);
  const int fd = layer.file->descriptor;
  struct stat about;
  if (s.process != base::process_id() || tiers::stat_fd(fd, &about) != 0 ||
      about.st_ino != s.inode)
    return false;
  const auto bytes = static_cast<uint64_t>(about.st_size);
  if ((layer.file->flags & O_ACCMODE) == O_RDWR)
    return stack::is_loadable(fd, bytes);
  if (bytes < stack::kSmallestLoadable) return false;
  char path[32];
  base::Writer(path, sizeof path).add("/proc/self/fd/").add_number(static_cast<uint64_t>(fd));
  const base::HoldsDescriptor held;
  const long again = base::open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (base::failed(again)) return false;
  const bool is = stack::is_loadable(static_cast<int>(again), bytes);
  stack::close_keeping_locks(static_cast<int>(again));
  return is;
}

void close(Layer& layer) {
  const State& s = state(layer);
  if (s.tier == nullptr || !s.writes) return;
  if (is_to_be_loaded(layer)) publish_open(layer);
  stage::close_staged(layer);
  if (s.mode == tiers::Mode::kAsync) tiers::wake_daemon(*s.tier);
}

}  // namespace

const Kind kStage = {
    .name = kName, .flags = kOrdered, .state_bytes = sizeof(State), .statistics_count = kStatistics,
    .create = create, .open = open, .ready = nullptr, .read = nullptr, .write = stage::write,
    .size = nullptr, .truncate = stage::truncate, .flush = nullptr, .sync = sync,
    .invalidate = nullptr, .close = close, .make_space = stage::make_space,
    .reserve = stage::reserve,
    .names = &stage::kNames,
};

}  // namespace weir::layers
