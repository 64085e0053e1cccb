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
constinit uint64_t memories = 0;  // that this process has made

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
  *number = ++memories;
  memory_name(name, sizeof name, own_process(), *number);
  return base::system_call(SYS_memfd_create, reinterpret_cast<long>(name),
                           (flags & O_CLOEXEC) != 0 ? 1 : 0);
}

namespace {

// The name is locked.
void add_opening(Name* n, int fd) {
  for (Opened& o : n->opened) {
    if (o.process != 0) continue;
    o = {own_process(), fd};
    return;
  }
}

}  // namespace

long open_live(Name* n, int flags, bool adds) {
  char path[64], name[64];
  const LockedName locked(n);
  const uint64_t number = base::load(&n->live);
  if (number == 0) return -ENOENT;
  base::store(&n->live_shared, 1u);  // before it is opened: who has it does not use it again
  const base::Text want = memory_name(name, sizeof name, n->live_maker, number);
  const int access = (flags & O_ACCMODE) == O_RDONLY ? O_RDONLY : O_RDWR;
  for (const Opened& o : n->opened) {
    if (!is_memory(o, want)) continue;
    path_of(path, sizeof path, o);
    const long fd = base::open_at(AT_FDCWD, path,
                                  access | (flags & (O_TRUNC | O_CLOEXEC | O_APPEND)));
    if (base::failed(fd)) continue;
    if (adds) add_opening(n, static_cast<int>(fd));
    return fd;
  }
  return -ENOENT;
}

Seen see(const Name* n) { return {base::load(&n->live), base::load(&n->current)}; }

bool begin_live(Name* n, uint64_t number, int fd, const Seen& before) {
  const LockedName locked(n);
  if (see(n) != before) return false;
  memset(n->opened, 0, sizeof n->opened);
  n->live_maker = own_process();
  n->live_shared = 0;
  n->opened[0] = {n->live_maker, fd};
  base::store(&n->live, number);
  return true;
}

void add_live(Name* n, int fd) {
  const LockedName locked(n);
  add_opening(n, fd);
}

bool end_live(Name* n, int fd, uint64_t number) {
  const LockedName locked(n);
  const int me = own_process();
  bool any = false, mine = false;
  for (Opened& o : n->opened) {
    if (o.process == me && o.descriptor == fd) {
      o = {};
      mine = true;
    }
    any |= o.process != 0;
  }
  const bool alone = mine && !any && n->live == number && n->live_shared == 0;
  if (!any) base::store(&n->live, uint64_t{0});
  return alone;
}

void move_live(Name* from, Name* to) {
  memcpy(to->opened, from->opened, sizeof to->opened);
  to->live_maker = from->live_maker;
  to->live_shared = from->live_shared;
  base::store(&to->live, base::load(&from->live));
  base::store(&from->live, uint64_t{0});
}

}  // namespace weir::layers::pack
