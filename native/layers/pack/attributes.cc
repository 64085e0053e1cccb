// SPDX-License-Identifier: Apache-2.0
// What stat and access say of packed files, and calls that change it.
#include <errno.h>
#include <fcntl.h>

#include "base/credentials.h"
#include "layers/machinery/stack/inside.h"
#include "layers/pack/found_name.h"

namespace weir::layers::pack {

using stack::Change;
using stack::GivenPath;
using stack::kPass;

namespace {

bool in_group(uint32_t group) {
  if (own_user().group == group) return true;
  uint32_t groups[64];
  const long n = base::system_call(SYS_getgroups, 64, reinterpret_cast<long>(groups));
  for (long i = 0; i < n; ++i) {
    if (groups[i] == group) return true;
  }
  return false;
}

// Of a name that the container does not have: -ENOENT where the kernel has none either. It is asked
// whether there is a link, which might lead to a packed file: the call itself would not tell, and
// its failure be followed by this question.
Result missing(const GivenPath& p, const FoundName& f) {
  if (f.container == nullptr || f.version.state == kReal || !p.follow) return kPass;
  char some[1];
  const long n = base::system_call(SYS_readlinkat, p.directory, reinterpret_cast<long>(p.path),
                                   reinterpret_cast<long>(some), sizeof some);
  return n == -ENOENT ? n : kPass;
}

}  // namespace

Owner own_user() {
  const base::Acting as = base::acting(stack::may_change());
  return {as.user, as.group};
}

namespace {

// Busy is held.
Result stat_found(const GivenPath& p, const FoundName& f, struct stat* to) {
  if (!f.there()) return missing(p, f);
  fill_stat(*f.container, f.version, to);
  // Of one that is yet to be filled nobody has changed anything.
  if (base::load(&f.name->live) != 0 && base::load(&f.name->unsettled) != kUnfilled) {
    struct stat live;
    if (stat_live(*f.container, f.name, &live) == 0) {
      to->st_size = live.st_size;
      to->st_blocks = (live.st_size + 511) / 512;
      to->st_mode = live.st_mode;
      to->st_mtim = live.st_mtim;
      to->st_ctim = live.st_ctim;
    }
  }
  return 0;
}

constexpr uint64_t kStepNs = 500'000;  // the kernel's times have steps of 1 ms at least

// The time of a directory is that of the last name in it, whoever has made or removed that. What
// the kernel has changed later counts: utimes of the directory. So does what it has changed in the
// same step of its clock, but for names, which are changes of both of its times. Packed names that
// are made or removed after this are later than what is shown, whatever the step of the kernel's
// clock: since Linux 6.13 a time that was asked for is followed by one that is finer.
Result stat_directory(const GivenPath& p, base::Text path, struct stat* to) {
  base::Identity directory;
  uint64_t changed;
  if (!names_changed_in(path, &directory, &changed) ||
      base::system_call(SYS_newfstatat, p.directory, reinterpret_cast<long>(p.path),
                        reinterpret_cast<long>(to), p.follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0 ||
      base::Identity{to->st_dev, to->st_ino} != directory)
    return kPass;
  const uint64_t seen = static_cast<uint64_t>(to->st_ctim.tv_sec) * 1'000'000'000 +
                        static_cast<uint64_t>(to->st_ctim.tv_nsec);
  const bool names = to->st_mtim.tv_sec == to->st_ctim.tv_sec &&
                     to->st_mtim.tv_nsec == to->st_ctim.tv_nsec;
  const uint64_t until = seen + (names ? 0 : kStepNs);
  if (changed > until) {
    to->st_mtim = {static_cast<time_t>(changed / 1'000'000'000),
                   static_cast<long>(changed % 1'000'000'000)};
    to->st_ctim = to->st_mtim;
  } else if (changed < until) {
    note_names_seen(path, until);
  }
  return 0;
}

}  // namespace

Result stat(const GivenPath& p, struct stat* to) {
  const Busy hold;
  return stat_found(p, find(p), to);
}

Result stat_any(const GivenPath& p, struct stat* to) {
  const Busy hold;
  const PlaceOf at(p);
  const Result r = stat_found(p, find(at.place), to);
  const bool is_other = r == kPass && at.place.name.size != 0;
  return is_other ? stat_directory(p, base::text(at.room.data()), to) : r;
}

Result access(const GivenPath& p, int mode) {
  const Busy hold;
  const FoundName f = find(p);
  if (!f.there()) return missing(p, f);
  return is_allowed(f.version, mode) ? 0 : -EACCES;
}

namespace {

void apply(const Change& change, Version* v) {
  switch (change.what) {
    case Change::kMode: v->mode = static_cast<uint16_t>(change.mode & 07777); break;
    case Change::kOwner:
      if (change.user != ~0u) v->user = change.user;
      if (change.group != ~0u) v->group = change.group;
      break;
    case Change::kTimes:
      if (change.modified.tv_nsec == UTIME_OMIT) break;
      v->seconds = change.modified.tv_sec;
      v->nanoseconds = static_cast<uint32_t>(change.modified.tv_nsec);
      break;
  }
}

// Another process, or the daemon for one that is dead, has still to write the record as it was: it
// would come over one that was changed where it lies.
bool waits_elsewhere(const Container& c, const Version& v) {
  if (v.state != kPacked || v.container != 0 || v.process >= kProcesses || v.process == c.process)
    return false;
  const Process& p = c.segment.shared->processes[v.process];
  const uint64_t begin = base::load(&p.chunk_offset);
  return begin != kNoChunk && v.offset >= begin && v.offset < begin + base::load(&p.chunk_bytes);
}

// Busy is held.
Result change_name(Container& c, Name* n, const Change& change) {
  const uint32_t me = own_user().user;
  const Version before = current(n);
  const bool gives = change.what == Change::kOwner && change.user != ~0u && change.user != me;
  if (me != 0 && (me != before.user || gives)) return -EPERM;
  change_live(c, n, change);  // the next close stores it
  if (waits_elsewhere(c, before)) {
    Version changed = before;
    apply(change, &changed);
    return -store_copy(c, n, changed, n);
  }
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

}  // namespace

namespace {

Result change_packed(const GivenPath& p, const Change& change) {
  const Busy hold;
  const FoundName f = find(p);
  if (f.there()) {
    const Result changed = change_name(*f.container, f.name, change);
    return changed == -ESTALE ? kPass : changed;
  }
  if (change.what != Change::kTimes) forget_permissions();  // it may be a directory
  return kPass;
}

}  // namespace

Result change(const GivenPath& p, const Change& change) {
  const Result changed = change_packed(p, change);
  // What may be executed from now on is a real file: children of vfork find no packed ones.
  if (changed == 0 && change.what == Change::kMode && (change.mode & 0111) != 0) kNames.bring(p);
  return changed;
}

Result change_open(Layer& l, const Change& change) {
  const Busy hold;
  Container* c = nullptr;
  Name* const n = name_of(l, &c);
  return n != nullptr ? change_name(*c, n, change) : -ENOENT;
}

namespace {

constexpr Result kLarge = stack::kPass + 2;

Result truncate_small(const GivenPath& p, uint64_t bytes) {
  const Busy hold;
  const FoundName f = find(p);
  if (!f.there()) return kPass;
  if (!is_allowed(f.version, 2)) return -EACCES;
  if (bytes > rules::option_number(*f.container->spec, "limit", pack_declared::kDefaultLimit))
    return kLarge;
  const Result cut = truncate_name(*f.container, f.name, bytes);
  return cut == -ESTALE ? kPass : cut;
}

}  // namespace

Result truncate(const GivenPath& p, uint64_t bytes) {
  const Result cut = truncate_small(p, bytes);
  if (cut != kLarge) return cut;
  const Result brought = kNames.bring(p);  // the kernel makes it so long
  return brought == 0 ? kPass : brought;
}

Result stat_open(Layer& l, struct stat* to) {
  const Busy hold;
  Container* c = nullptr;
  const Name* const n = name_of(l, &c);
  if (n == nullptr) return -ENOENT;
  fill_stat(*c, current(n), to);
  return 0;
}

Result truncate_name(Container& c, Name* n, uint64_t bytes) {
  const base::HoldsDescriptor held;
  const Version v = current(n);
  const LiveMemory live(c, n);
  uint64_t number = 0;
  const long fd = live.is_there() ? live.result() : make_memory(O_CLOEXEC, &number);
  if (base::failed(fd)) return fd;
  const int file = static_cast<int>(fd);
  int error = 0;
  if (live.is_there()) {
    error = static_cast<int>(-live.truncate(bytes));
  } else {
    if (v.state == kPacked && bytes != 0) error = fetch(c, v, n->bytes, file);
    if (error == 0) error = static_cast<int>(-base::system_call(SYS_ftruncate, fd, bytes));
  }
  for (int i = 0; error == 0 || error == EAGAIN; ++i) {
    struct stat about {};
    base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&about));
    about.st_mode = S_IFREG | v.mode;
    about.st_uid = v.user;
    about.st_gid = v.group;
    error = append(c, n, file, about);
    if (error != EAGAIN || i == kTries) break;
  }
  if (error == EAGAIN) error = EIO;
  if (!live.is_there()) base::close_fd(file);
  return -error;
}

bool is_allowed(const Version& v, int mode) {
  const int all = v.mode & v.mode >> 3 & v.mode >> 6;
  if ((all & mode & 7) == (mode & 7)) return true;  // whoever it is
  const uint32_t me = own_user().user;
  if (me == 0) return (mode & 1) == 0 || (v.mode & 0111) != 0;
  const int shift = me == v.user ? 6 : in_group(v.group) ? 3 : 0;
  return (v.mode >> shift & mode & 7) == (mode & 7);
}

Result not_allowed(const Version& v, int flags) {
  const int access = flags & O_ACCMODE;
  const bool changes = access != O_RDONLY || (flags & O_TRUNC) != 0;
  const int mode = (access != O_WRONLY ? 4 : 0) | (changes ? 2 : 0);
  return is_allowed(v, mode) ? 0 : -EACCES;
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

}  // namespace weir::layers::pack
