// SPDX-License-Identifier: Apache-2.0
// Files that are open: memory (memfd) whose name says which it is. Whoever opens the same file
// finds it by /proc, in this process or in another one of the user, and sees what others write.
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "layers/pack/pack.h"

namespace weir::layers::pack {
namespace {

constexpr char kMemoryName[] = "weir-pack.";
constinit uint32_t memories = 0;  // that this process has made

int own_process() { return static_cast<int>(base::self().pid); }

base::Text memory_name(char* room, size_t bytes, int process, uint64_t number) {
  base::Writer text(room, bytes);
  text.add(kMemoryName).add_number(static_cast<uint64_t>(process)).add(".").add_number(number);
  return text.view();
}

base::Text path_of(char* room, size_t bytes, const Opened& o) {
  base::Writer text(room, bytes);
  text.add("/proc/").add_number(static_cast<uint64_t>(o.process)).add("/fd/");
  return text.add_number(static_cast<uint64_t>(o.descriptor)).view();
}

// Whether the descriptor is the memory of that name still.
bool is_memory(const Opened& o, base::Text want) {
  if (o.process == 0) return false;
  char path[64], found[128];
  path_of(path, sizeof path, o);
  const long length = base::read_link(path, found, sizeof found);
  constexpr size_t kPrefix = sizeof "/memfd:" - 1;
  return !base::failed(length) && static_cast<size_t>(length) > kPrefix + want.size &&
         memcmp(found + kPrefix, want.data, want.size) == 0 && found[kPrefix + want.size] == ' ';
}

}  // namespace

bool is_any_memory(int fd) {
  constexpr size_t kBegin = sizeof "/memfd:" - 1, kName = sizeof kMemoryName - 1;
  char path[32], found[128];
  base::Writer(path, sizeof path).add("/proc/self/fd/").add_number(static_cast<uint64_t>(fd));
  const long length = base::read_link(path, found, sizeof found);
  return length > static_cast<long>(kBegin + kName) &&
         memcmp(found + kBegin, kMemoryName, kName) == 0;
}

long make_memory(int flags, uint64_t* number) {
  char name[64];
  *number = static_cast<uint64_t>(own_process()) << 32 | ++memories;
  memory_name(name, sizeof name, own_process(), *number);
  return base::system_call(SYS_memfd_create, reinterpret_cast<long>(name),
                           (flags & O_CLOEXEC) != 0 ? 3 : 2);  // CLOEXEC, ALLOW_SEALING
}

bool seal(int memory) {
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
  if (base::system_call(SYS_fcntl, memory, F_ADD_SEALS, kSeals) == 0 || is_sealed(memory))
    return true;
  char path[64];  // it may be open for reading alone
  path_of(path, sizeof path, {own_process(), memory});
  const long fd = base::open_at(AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (base::failed(fd)) return false;
  base::system_call(SYS_fcntl, fd, F_ADD_SEALS, kSeals);
  base::close_fd(static_cast<int>(fd));
  return is_sealed(memory);
}

bool is_sealed(int memory) {
  const long seals = base::system_call(SYS_fcntl, memory, F_GET_SEALS);
  return !base::failed(seals) && (seals & F_SEAL_WRITE) != 0;
}

namespace {

// at(opening) for each that the name has room for, until it returns true. The name is locked.
template <typename At>
bool any_opening(const Segment& s, Name* n, At at) {
  for (Opened& o : n->opened) {
    if (at(o)) return true;
  }
  for (uint32_t place = n->more; place != 0;) {
    MoreOpened* const more = more_opened_at(s, place);
    for (Opened& o : more->opened) {
      if (at(o)) return true;
    }
    place = more->next;
  }
  return false;
}

void forget_dead(const Segment& s, Name* n) {
  any_opening(s, n, [](Opened& o) {
    if (o.process != 0 && base::system_call(SYS_kill, o.process, 0) == -ESRCH) o = {};
    return false;
  });
}

// Each opening has its place: while one is not known the file would be taken for closed. False: no
// memory. The name is locked.
bool add_opening(const Segment& s, Name* n, int fd) {
  const auto take = [fd](Opened& o) {
    if (o.process != 0) return false;
    o = {own_process(), fd};
    return true;
  };
  if (any_opening(s, n, take)) return true;
  forget_dead(s, n);
  if (any_opening(s, n, take)) return true;
  const uint32_t place = take_heap(s, sizeof(MoreOpened));
  if (place == 0) return false;
  more_opened_at(s, place)->next = n->more;
  base::store(&n->more, place);
  return any_opening(s, n, take);
}

int fill_at(Container& c, Name* n, const char* path) {
  const base::HoldsDescriptor held;
  const Version v = current(n);
  base::store(&n->live_shared, n->live_shared | kLiveOpened);  // its process takes it for another
  const long fd = base::open_at(AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (base::failed(fd)) return static_cast<int>(-fd);
  int error = static_cast<int>(-base::system_call(SYS_ftruncate, fd, v.bytes));
  if (error == 0) error = fetch(c, v, n->bytes, static_cast<int>(fd));
  const timespec times[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(v.seconds), v.nanoseconds}};
  base::system_call(SYS_utimensat, fd, 0, reinterpret_cast<long>(times), 0);
  base::close_fd(static_cast<int>(fd));
  return error;
}

int settle_at(Container& c, Name* n, const char* path) {
  if (n->unsettled == kUnfilled) {
    if (const int error = fill_at(c, n, path); error != 0) return error;
  } else if (n->unsettled != 0) {
    base::system_call(SYS_truncate, reinterpret_cast<long>(path), 0);
  }
  n->unsettled = 0;
  return 0;
}

// call(opening, its path in /proc) on one of those that are open. What it returns; -ENOENT: nobody
// has the file open. The name is locked meanwhile, so that nobody closes it.
template <typename Call>
long on_opening(Container& c, Name* n, Call call) {
  char path[64], name[64];
  const LockedName locked(n);
  const uint64_t number = base::load(&n->live);
  if (number == 0) return -ENOENT;
  const base::Text want = memory_name(name, sizeof name, n->live_maker, number);
  long result = -ENOENT;
  any_opening(c.segment, n, [&](const Opened& o) {
    if (!is_memory(o, want)) return false;
    path_of(path, sizeof path, o);
    base::store(&n->live_shared, n->live_shared | kLiveSeen);  // before: who has it looks there
    const int error = settle_at(c, n, path);
    result = error == 0 ? call(o, path) : -error;
    return result != -ENOENT;  // its process has ended
  });
  return result;
}

}  // namespace

int settle_live(Container& c, Name* n) {
  char path[64], name[64];
  int error = 0;
  const base::Text want = memory_name(name, sizeof name, n->live_maker, base::load(&n->live));
  const bool is_settled = n->unsettled == 0 || any_opening(c.segment, n, [&](const Opened& o) {
    if (!is_memory(o, want)) return false;
    path_of(path, sizeof path, o);
    error = settle_at(c, n, path);
    return true;
  });
  if (is_settled && error == 0) base::store(&n->settled, base::load(&n->live));
  return error;
}

long open_live(Container& c, Name* n, int flags) {
  const int access = (flags & O_ACCMODE) == O_RDONLY ? O_RDONLY : O_RDWR;
  return on_opening(c, n, [&](const Opened&, const char* path) {
    base::store(&n->live_shared, n->live_shared | kLiveOpened);  // before it is opened
    const long fd = base::open_at(AT_FDCWD, path,
                                  access | (flags & (O_TRUNC | O_CLOEXEC | O_APPEND)));
    if (base::failed(fd) || add_opening(c.segment, n, static_cast<int>(fd))) return fd;
    base::close_fd(static_cast<int>(fd));
    return long{-ENOMEM};
  });
}

LiveMemory::LiveMemory(Container& c, Name* n) {
  fd_ = on_opening(c, n, [this, n](const Opened& o, const char*) {
    is_own_ = o.process == own_process();
    number_ = base::load(&n->live);
    return is_own_ ? long{o.descriptor} : -ENOENT;
  });
  if (is_own_) return;
  fd_ = on_opening(c, n, [this, n](const Opened&, const char* path) {
    base::store(&n->live_shared, n->live_shared | kLiveOpened);
    number_ = base::load(&n->live);
    return base::open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  });
}

LiveMemory::~LiveMemory() {
  if (!is_own_ && !base::failed(fd_)) base::close_fd(fd());
}

long LiveMemory::truncate(uint64_t bytes) const {
  char path[64];
  path_of(path, sizeof path, {own_process(), fd()});  // fd() may be for reading alone
  return base::system_call(SYS_truncate, reinterpret_cast<long>(path), bytes);
}

long stat_live(Container& c, Name* n, struct stat* to) {
  return on_opening(c, n, [to](const Opened&, const char* path) {
    return base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path),
                             reinterpret_cast<long>(to), 0);
  });
}

long change_live(Container& c, Name* n, const stack::Change& change) {
  const timespec times[2] = {{0, UTIME_OMIT}, change.modified};
  return on_opening(c, n, [&](const Opened&, const char* path) -> long {
    const auto where = reinterpret_cast<long>(path);
    switch (change.what) {
      case stack::Change::kMode:
        return base::system_call(SYS_fchmodat, AT_FDCWD, where, change.mode);
      case stack::Change::kOwner:
        return base::system_call(SYS_fchownat, AT_FDCWD, where, change.user, change.group, 0);
      case stack::Change::kTimes:
        return base::system_call(SYS_utimensat, AT_FDCWD, where, reinterpret_cast<long>(times), 0);
    }
    return 0;
  });
}

bool begin_live(const Segment& s, Name* n, uint64_t number, int fd, const Seen& before,
                uint32_t unsettled) {
  const LockedName locked(n);
  if (see(n) != before) return false;
  any_opening(s, n, [](Opened& o) {
    o = {};
    return false;
  });
  n->live_maker = own_process();
  n->live_shared = 0;
  n->unsettled = unsettled;
  n->opened[0] = {n->live_maker, fd};
  base::store(&n->live, number);
  return true;
}

void add_live(const Segment& s, Name* n, int fd) {
  const LockedName locked(n);
  add_opening(s, n, fd);
}

bool end_live(const Segment& s, Name* n, int fd, uint64_t number) {
  const LockedName locked(n);
  const int me = own_process();
  bool any = false, mine = false;
  any_opening(s, n, [&](Opened& o) {
    if (o.process == me && o.descriptor == fd) {
      o = {};
      mine = true;
    }
    any |= o.process != 0;
    return false;
  });
  const bool alone = mine && !any && n->live == number && (n->live_shared & kLiveOpened) == 0;
  if (!any) {
    base::store(&n->live, uint64_t{0});
    n->unsettled = 0;
  }
  return alone;
}

void move_live(Name* from, Name* to) {
  const uint32_t more = from->more;
  base::store(&from->more, 0u);
  memcpy(to->opened, from->opened, sizeof to->opened);
  base::store(&to->more, more);
  to->live_maker = from->live_maker;
  to->live_shared = from->live_shared;
  to->unsettled = from->unsettled;
  from->unsettled = 0;
  base::store(&to->live, base::load(&from->live));
  base::store(&from->live, uint64_t{0});
}

}  // namespace weir::layers::pack
