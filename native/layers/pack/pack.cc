// SPDX-License-Identifier: Apache-2.0
// Layer pack: an open file is memory (memfd), which the kernel serves; at its close the contents go
// into the container. So offsets, copies of descriptors, pipes and maps are as with any file.
#include "layers/pack/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/scratch.h"
#include "base/section.h"
#include "layers/machinery/stack/carried_locks.h"
#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/loadable.h"
#include "layers/machinery/stack/lock.h"
#include "layers/machinery/stack/table.h"
#include "layers/pack/place.h"
#include "layers/pack/transfer.h"

namespace weir::layers::pack {

WEIR_BUSY(busy);

namespace {

using namespace pack_declared;
using stack::Opening;
using stack::Reason;
using stack::Transfer;

void count(Layer& l, Statistic what, uint64_t n = 1) { l.statistics[what] += n; }

uint64_t limit_of(const Layer& l) {
  return rules::option_number(*l.spec, "limit", kDefaultLimit);
}

// Where contents go as they are: what is written must be on disk when the call returns.
bool is_passed_on(int flags) {
  return (flags & (O_DIRECT | O_DSYNC | O_SYNC)) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

Version new_version(Container& c, unsigned mode, const Owner& owner) {
  Version v{};
  v.state = kOpened;
  v.birth = base::fetch_add(&c.segment.shared->sequence, uint64_t{1});
  v.mode = static_cast<uint16_t>(mode & 07777 & ~base::load(&stack::creation_mask));
  v.user = owner.user;
  v.group = owner.group;
  const uint64_t now = base::clock_ns(CLOCK_REALTIME);
  v.seconds = static_cast<int64_t>(now / 1'000'000'000);
  v.nanoseconds = static_cast<uint32_t>(now % 1'000'000'000);
  v.process = kProcesses;
  return v;
}

// A name that is there, or one that O_CREAT makes. kPass: the kernel opens it.
Result open_name(Layer& l, Container& c, Name* n, const Opening& o) {
  State& s = state(l);
  Version v = current(n);
  const Owner owner = writes(o.flags) || (o.flags & O_CREAT) != 0 ? own_user() : Owner{};
  const bool there = v.state == kPacked || v.state == kOpened;
  if (there && (o.flags & O_CREAT) != 0 && (o.flags & O_EXCL) != 0) return -EEXIST;
  if (there) {
    if (const Result no = not_allowed(v, o.flags); no != 0) return no;
  } else if (v.state == kReal || (o.flags & O_CREAT) == 0) {
    return stack::kPass;
  } else {
    if (const int error = may_change(c, owner.user); error != 0) return -error;
    look_again(c);
    if (current(n).state == kReal) return stack::kPass;
    if (const int error = open_file(c, true); error != 0) return -error;
    const LockedName locked(n);
    const Version now = current(n);
    if (now.state == kPacked || now.state == kOpened) {  // another process was faster
      if ((o.flags & O_EXCL) != 0) return -EEXIST;
      v = now;
    } else if (now.state == kReal) {
      return stack::kPass;
    } else {
      v = new_version(c, o.mode, owner);
      publish(n, v);
      note_names_changed(c);
      s.owes = true;
    }
  }
  if (s.owes && !writes(o.flags)) {  // there is no close that would store the empty file
    if (const Result made = truncate_name(c, n, 0); made != 0) return made;
    v = current(n);
  }
  if ((o.flags & O_TRUNC) != 0 && !writes(o.flags)) {
    if (const Result cut = truncate_name(c, n, 0); cut != 0) return cut;
    v = current(n);
  }
  if (writes(o.flags) && (o.flags & O_TRUNC) != 0) s.owes = true;
  s.name = n;
  long fd = 0;
  for (;;) {
    const Seen seen = see(n);
    v = current(n);
    if (v.state == kReal || v.state == kAbsent) return stack::kPass;
    fd = seen.live != 0 ? open_live(c, n, o.flags) : -ENOENT;
    if (fd == -ENOENT) fd = open_memory(c, n, v, o, owner, l, seen);
    if (fd != -EAGAIN) break;
  }
  s.birth = v.birth;
  if (base::failed(fd)) return fd;
  s.container = &c;
  s.times_left = times_left;
  ++c.open_files;
  if ((o.flags & O_APPEND) != 0) base::system_call(SYS_fcntl, fd, F_SETFL, O_APPEND);
  return fd;
}

// Without a copy of the path; false where it may lead elsewhere than its text says.
bool place_of_file(const stack::File* f, Place* to) {
  const char* const slash = strrchr(f->path, '/');
  if (!f->exact || slash == nullptr || slash[1] == 0) return false;
  to->name = base::text(slash + 1);
  to->directory = {f->path, slash == f->path ? 1 : static_cast<size_t>(slash - f->path)};
  return true;
}

// The kernel's own. Layers that hold bytes of the file hear of it first.
Result open_real(Layer& l, Opening& o) {
  const base::SignalsAsBefore as_before;
  if ((o.flags & O_TRUNC) != 0) stack::settle(o.directory, o.path);
  return open_below(l, o);
}

// A file that is open nowhere becomes a real one. False: it is open.
bool bring_closed(Container& c, Name* n) {
  while (base::load(&n->live) == 0) {
    if (make_real(c, n) != EAGAIN) return true;
  }
  return false;
}

// kPass: the kernel's. The room is given back before that, which may wait.
Result open_packed(Layer& l, Opening& o) {
  const base::Scratch room;
  Place place;
  const bool changes = writes(o.flags) || (o.flags & O_CREAT) != 0;
  const bool passed_on = is_passed_on(o.flags) || (stack::has_own_calls() && changes);
  if (!place_of_file(l.file, &place) &&
      !stack::find_place({o.directory, o.path, false}, kNames, room.data(), &place))
    return stack::kPass;
  place.spec = l.spec;
  Result fd = stack::kPass;
  {
    const Busy hold;
    int error = 0;
    const bool makes = (o.flags & O_CREAT) != 0 && !passed_on;
    Container* const c = container_of(*l.spec, place.directory, makes, &error);
    if (c == nullptr && error != 0) {
      stack::note_bypass(l, Reason::kNoMemory);
    } else if (c == nullptr && is_left_alone(*l.spec, place.directory)) {
      stack::note_bypass(l, Reason::kCached);
    } else if (c != nullptr && place.name.size <= kLongestName &&
               kind_of_name(*l.spec, place.name) == 0) {
      Name* const n = makes ? make_name(c->segment, place.name) : find_name(c->segment, place.name);
      const bool becomes_real = n != nullptr && passed_on && bring_closed(*c, n);
      if (n != nullptr && !becomes_real) fd = open_name(l, *c, n, o);
    }
  }
  return fd;
}

Result open(Layer& l, Opening& o) {
  const uint64_t turned = turned_real(false);
  const Result fd = open_packed(l, o);
  if (fd == stack::kPass) {
    const Result real = open_real(l, o);
    if (real < 0 || (o.flags & O_CREAT) == 0) return real;
    note_real({o.directory, o.path, false});
    const Result r = stack::after_opening(static_cast<int>(real), o.path, o.flags);
    if (r == 0) return real;
    stack::close_keeping_locks(static_cast<int>(real));
    return r;
  }
  if (fd < 0) return fd;
  l.file->in_memory = true;
  state(l).turned = turned;
  if (!writes(o.flags)) count(l, kServed);
  return fd;
}

Result read(Layer& l, const Transfer& t) {
  stack::File* const f = l.file;
  follow_real(l);
  if (!f->in_memory) return read_below(l, t);
  if ((f->flags & O_ACCMODE) == O_WRONLY) return -EBADF;
  if (WEIR_UNLIKELY(f->unsettled)) {
    if (const Result r = read_fresh(l, t); r != stack::kPass) return r;
  }
  return f->bottom->kind->read(*f->bottom, t);
}

// What was written since the last look made the file larger than the limit.
bool is_large(Layer& l) {
  State& s = state(l);
  struct stat about {};
  base::system_call(SYS_fstat, l.file->descriptor, reinterpret_cast<long>(&about));
  s.written = static_cast<uint64_t>(about.st_size);
  return s.written > limit_of(l);
}

Result sync(Layer& l, bool data_only);

Result write(Layer& l, const Transfer& t) {
  stack::File* const f = l.file;
  follow_real(l);
  if (!f->in_memory) return write_below(l, t);
  if (!writes(f->flags)) return -EBADF;
  const bool locked = stack::lock(f);
  const Result r = WEIR_UNLIKELY(f->unsettled) ? write_first(l, t)
                                               : f->bottom->kind->write(*f->bottom, t);
  if (r > 0) state(l).written += static_cast<uint64_t>(r);
  if (WEIR_UNLIKELY(r == -EPERM) && f->in_memory && is_sealed(f->descriptor)) {
    if (locked) stack::unlock(f);
    return stack::make_real(f, Reason::kUnsupported) ? write_below(l, t) : -EIO;
  }
  const bool large = f->in_memory && state(l).written > limit_of(l) && is_large(l);
  if (locked) stack::unlock(f);
  if (large) stack::make_real(f, Reason::kLargeRequests);
  if (WEIR_UNLIKELY((f->flags & O_DSYNC) != 0) && f->in_memory && r > 0) {
    if (const Result synced = sync(l, true); synced < 0) return synced;
  }
  if (WEIR_UNLIKELY(f->syncs) && f->in_memory) {  // no close will follow
    const Result stored = store(l);
    const Busy hold;
    leave_all();
    if (stored < 0) return stored;
  }
  return r;
}

Result truncate_open(Layer& l, uint64_t bytes) {
  stack::File* const f = l.file;
  stack::before_growth(f->descriptor, bytes);
  const Result r = truncate_below(l, bytes);
  return r == -EPERM && stack::was_sealed(f->descriptor) ? truncate_below(l, bytes) : r;
}

Result sync(Layer& l, bool data_only) {
  follow_real(l);
  if (!l.file->in_memory) return sync_below(l, data_only);
  if (const Result stored = store(l); stored < 0) return stored;
  const Busy hold;
  Container* c = nullptr;
  if (name_of(l, &c) == nullptr || c == nullptr) return 0;
  if (const int error = flush(*c); error != 0) return -error;
  return c->file >= 0 ? base::system_call(SYS_fdatasync, c->file) : 0;
}

// A file that no close has stored: it is not there any more.
void forget_new(Name* n) {
  const LockedName locked(n);
  if (current(n).state == kOpened && base::load(&n->live) == 0) publish(n, Version{});
}

void close(Layer& l) {
  stack::File* const f = l.file;
  State& s = state(l);
  const base::Section section;
  bool is_alone = false;
  follow_real(l);
  if (f->in_memory && f->descriptor >= 0) {
    const Result stored = store(l);
    if (stored < 0) stack::defer_error(l, static_cast<int>(-stored), s.left.bytes);
    const Busy hold;
    Container* c = nullptr;
    if (Name* const n = name_of(l, &c); n != nullptr) {
      is_alone = end_live(c->segment, n, f->descriptor, s.used.number);
      if (stored < 0) forget_new(n);
    }
    if (f->syncs) leave_all();
    f->in_memory = false;
  }
  const Busy hold;
  if (s.container != nullptr && s.times_left == times_left) --s.container->open_files;
  s.container = nullptr;
  s.name = nullptr;
  end_memory(s.used, is_alone && !f->lent && !f->locked, s.left);
}

// Whether the open file holds the contents that the version says.
bool has_contents(int fd, const struct stat& about, const Version& v) {
  uint32_t crc = 0;
  return static_cast<uint64_t>(about.st_size) == v.bytes && checksum(fd, v.bytes, &crc) &&
         crc == v.crc;
}

bool is_same(int fd, const struct stat& about, const Version& v) {
  if (v.state != kPacked) return false;
  if ((about.st_mode & 07777) != v.mode || about.st_uid != v.user || about.st_gid != v.group ||
      about.st_mtim.tv_sec != v.seconds || about.st_mtim.tv_nsec != v.nanoseconds)
    return false;
  return has_contents(fd, about, v);
}

// It has become a real file by its name meanwhile: these contents are newer.
Result copy_to_real(Layer& l) {
  const Result fd = make_real_file(l);
  return fd < 0 ? fd : stack::close_keeping_locks(static_cast<int>(fd));
}

}  // namespace

bool is_large(Layer& l, uint64_t bytes) { return bytes > limit_of(l); }

void follow_real(Layer& l) {
  stack::File* const f = l.file;
  const uint64_t now = turned_real(false);
  if (WEIR_LIKELY(!f->in_memory || now == state(l).turned || f->descriptor < 0)) return;
  state(l).turned = now;
  bool real = false;
  {
    const Busy hold;
    Container* c = nullptr;
    const Name* const n = name_of(l, &c);
    real = n != nullptr && current(n).state == kReal;
  }
  if (real) stack::make_real(f, Reason::kUnsupported);
}

namespace {

bool is_of(const Name* n, uint64_t birth) {
  const Version v = current(n);
  return v.birth == birth && v.state != kAbsent;
}

// Where the file has gone from that name; null: it was removed.
Name* follow_name(const Container& c, Name* n, uint64_t birth) {
  for (int hops = 0; n != nullptr && hops < 64; ++hops) {
    if (is_of(n, birth)) return n;
    if (n->moved_birth == 0 || n->moved_place == 0) return nullptr;
    if (n->moved_birth != birth) break;  // another file has had the name, and has gone from it, too
    n = name_at(c.segment, n->moved_place);
  }
  Cursor at;
  while (Name* const other = next_name(c.segment, &at)) {
    if (is_of(other, birth)) return other;
  }
  return nullptr;
}

}  // namespace

Name* name_of(Layer& l, Container** container) {
  State& s = state(l);
  if (s.container != nullptr && s.times_left == times_left && !s.late) {
    *container = s.container;
    return follow_name(*s.container, s.name, s.birth);
  }
  const base::Scratch room;
  Place place;
  int error = 0;
  const char* const path = s.renamed != nullptr ? s.renamed : l.file->path;
  if (!stack::find_place({AT_FDCWD, path, false}, kNames, room.data(), &place)) return nullptr;
  Container* const c = *container = container_of(*l.spec, place.directory, s.late, &error);
  if (c == nullptr) return nullptr;
  return s.late ? make_name(c->segment, place.name)
                : follow_name(*c, find_name(c->segment, place.name), s.birth);
}

namespace {

// The process is ending, and leaves the container: what it writes after this goes by the path.
void begin_late(Layer& l, const Container& c, const Name* n) {
  constexpr size_t kMost = sizeof c.directory + kLongestName + 2;
  State& s = state(l);
  if (s.late) return;
  s.late = true;
  char path[kMost];
  path_in(c, {n->text, n->bytes}, path, sizeof path);
  if (strcmp(path, l.file->path) == 0) return;
  const long at = base::map(kMost, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(at)) return;
  s.renamed = reinterpret_cast<char*>(at);
  memcpy(s.renamed, path, strlen(path) + 1);
}

}  // namespace

namespace {

// Children of vfork, which exec, find no packed files.
bool is_script(int fd, const struct stat& about) {
  char begin[2] = {};
  return (about.st_mode & 0111) != 0 && read_at(fd, begin, sizeof begin, 0) == sizeof begin &&
         memcmp(begin, "#!", sizeof begin) == 0;
}

// Who writes to the file of another user does not own it by that, although the memory is the
// writer's. Root has given it to the owner when it was opened.
void keep_owner(const Version& v, struct stat* about) {
  if (v.state != kPacked && v.state != kOpened) return;
  if (about->st_uid == v.user && about->st_gid == v.group) return;
  const Owner me = own_user();
  if (me.user == 0) return;
  if (about->st_uid == me.user) about->st_uid = v.user;
  if (about->st_gid == me.group) about->st_gid = v.group;
}

}  // namespace

Result store(Layer& l) {
  State& s = state(l);
  struct stat about;
  const int fd = l.file->descriptor;
  if (!l.file->in_memory || !writes(l.file->flags)) return 0;
  if (const Result stored = store_whole(l); stored != stack::kPass) return stored;
  settle(l);
  if (base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&about)) != 0) return -EBADF;
  s.left = {static_cast<uint64_t>(about.st_size), about.st_uid, about.st_gid,
            static_cast<uint16_t>(about.st_mode & 07777), false};
  const Busy hold;
  Container* c = nullptr;
  Name* const n = name_of(l, &c);
  if (n == nullptr) return 0;  // it has been removed
  const Version v = current(n);
  if (v.state == kAbsent && !s.late) return 0;
  keep_owner(v, &about);
  if (l.file->syncs) begin_late(l, *c, n);
  if (v.state == kReal)
    return is_sealed(fd) || has_contents(fd, about, v) ? 0 : copy_to_real(l);
  if (!s.owes && is_same(fd, about, v)) return 0;
  const bool is_large = s.left.bytes > limit_of(l);
  const bool is_spilled = is_large || is_mostly_old(*c);
  if (is_spilled || is_script(fd, about) || stack::is_loadable(fd, s.left.bytes)) {
    if (is_spilled) count(l, kSpilled);
    stack::note_bypass(l, is_spilled ? Reason::kLargeRequests : Reason::kUnsupported);
    return copy_to_real(l);
  }
  const Counts before = counts;
  int error = append(*c, n, fd, about);
  for (int i = 0; i < kTries && error == EAGAIN; ++i) {
    base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&about));
    error = append(*c, n, fd, about);
  }
  if (error == EAGAIN) error = EIO;
  count(l, kContainerWrites, counts.writes - before.writes);
  if (error == ESTALE) return is_sealed(fd) ? 0 : copy_to_real(l);
  if (error != 0) return -error;
  s.owes = false;
  count(l, kStored);
  count(l, kStoredBytes, static_cast<uint64_t>(about.st_size));
  return 0;
}

}  // namespace weir::layers::pack

namespace weir::layers {

const stack::Kind kPack{
    .name = pack_declared::kName, .flags = stack::kOrdered, .state_bytes = sizeof(pack::State),
    .statistics_count = pack_declared::kStatistics, .create = nullptr, .open = pack::open,
    .ready = nullptr, .read = pack::read, .write = pack::write, .size = nullptr,
    .truncate = pack::truncate_open, .flush = nullptr, .sync = pack::sync, .invalidate = nullptr,
    .close = pack::close, .names = &pack::kNames,
};

}  // namespace weir::layers
