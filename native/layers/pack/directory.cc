// SPDX-License-Identifier: Apache-2.0
// The directory of a container: its path is walked once, and all that is asked of it when a process
// comes to it goes by that descriptor, so that a rank costs the metadata server few requests.
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "base/credentials.h"
#include "layers/machinery/stack/private.h"
#include "layers/pack/container.h"

namespace weir::layers::pack {

bool identify_open(int fd, base::Identity* to) {
  struct statx about {};
  const long seen = base::system_call(SYS_statx, fd, reinterpret_cast<long>(""),
                                      AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO,
                                      reinterpret_cast<long>(&about));
  if (seen != 0) return base::identify(fd, to);  // a kernel without statx
  *to = {makedev(about.stx_dev_major, about.stx_dev_minor), about.stx_ino};
  return true;
}

bool open_directory(Container& c) {
  const base::HoldsDescriptor held;
  const long fd = base::open_at(AT_FDCWD, c.directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (base::failed(fd)) return false;
  if (!identify_open(static_cast<int>(fd), &c.identity)) {
    base::close_fd(static_cast<int>(fd));
    return false;
  }
  stack::keep_private(static_cast<int>(fd), &c.at);  // without it each name has its whole path
  return true;
}

void close_directory(Container& c) {
  if (c.at >= 0) stack::close_private(&c.at);
}

bool follow_directory(Container& c) {
  const int fd = c.at >= 0 ? c.at : c.file;
  char link[32], path[sizeof c.path];
  if (fd < 0 || c.segment.shared == nullptr) return false;
  base::Writer(link, sizeof link).add("/proc/self/fd/").add_number(static_cast<uint64_t>(fd));
  const long size = base::read_link(link, path, sizeof path - 1);
  if (base::failed(size)) return false;
  path[size] = 0;
  char* const last = strrchr(path, '/');
  if (c.at < 0 && last != nullptr) last[last == path ? 1 : 0] = 0;  // the container lies in it
  struct stat about;
  const bool is_there =
      path[0] == '/' && strlen(path) < sizeof c.directory &&
      base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path),
                        reinterpret_cast<long>(&about), 0) == 0 &&
      base::Identity{static_cast<uint64_t>(about.st_dev), static_cast<uint64_t>(about.st_ino)} ==
          c.identity;
  if (!is_there) return false;
  c.directory_bytes = static_cast<uint32_t>(strlen(path));
  memcpy(c.directory, path, c.directory_bytes + 1);
  path_in(c, base::text(c.segment.shared->own), c.path, sizeof c.path);
  return true;
}

bool path_in(const Container& c, base::Text name, char* to, size_t room) {
  base::Writer path(to, room);
  path.add({c.directory, c.directory_bytes}).add("/").add(name);
  return !path.cut();
}

long open_in(const Container& c, const char* name, int flags, int mode) {
  if (c.at >= 0) return base::open_at(c.at, name, flags, mode);
  char path[sizeof c.path];
  return path_in(c, base::text(name), path, sizeof path)
             ? base::open_at(AT_FDCWD, path, flags, mode)
             : -ENAMETOOLONG;
}

namespace {

constexpr uint64_t kAskedAgainNs = 1'000'000'000;

uint64_t mix(uint64_t hash, uint64_t with) { return (hash ^ with) * 0x9e3779b97f4a7c15u; }

// What the kernel would look at.
uint64_t rights_of_process(uint32_t user) {
  uint32_t groups[64];
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  base::system_call(SYS_capget, reinterpret_cast<long>(&header), reinterpret_cast<long>(sets));
  const long count = base::system_call(SYS_getgroups, 64, reinterpret_cast<long>(groups));
  if (base::failed(count)) return 0;  // in more than 64 groups
  uint64_t hash = mix(mix(1, user), base::acting(true).group);
  for (long i = 0; i < count; ++i) hash = mix(hash, groups[i]);
  return mix(mix(hash, sets[0].effective), sets[1].effective) | 1;
}

// Until when another process of the node with the same rights knows that it may; 0: not known.
uint64_t allowed_until(const Shared* s, uint64_t rights) {
  const uint64_t until = base::load(&s->allowed_until_ns);
  return rights != 0 && base::load(&s->allowed_rights) == rights &&
                 base::load(&s->allowed_until_ns) == until
             ? until
             : 0;
}

long ask(const Container& c) {
  constexpr long kFaccessat2 = 439, kEffective = 0x200;  // AT_EACCESS
  const auto path = reinterpret_cast<long>(c.at >= 0 ? "" : c.directory);
  const long at = c.at >= 0 ? c.at : AT_FDCWD, empty = c.at >= 0 ? AT_EMPTY_PATH : 0;
  const long may = base::system_call(kFaccessat2, at, path, W_OK | X_OK, kEffective | empty);
  return may != -ENOSYS ? may
                        : base::system_call(SYS_faccessat, AT_FDCWD,
                                            reinterpret_cast<long>(c.directory), W_OK | X_OK);
}

}  // namespace

int may_change(Container& c, uint32_t user) {
  Shared* const s = c.segment.shared;
  const uint64_t now = base::now_ns();
  if (now < c.allowed_until && user == c.allowed_user) return 0;
  const uint64_t rights = rights_of_process(user);
  uint64_t until = allowed_until(s, rights);
  if (now >= until || until > now + kAskedAgainNs) {
    // Asked again: it may have been changed since.
    if (const long may = ask(c); may != 0) return static_cast<int>(-may);
    until = now + kAskedAgainNs;
    base::store(&s->allowed_until_ns, uint64_t{0});
    base::store(&s->allowed_rights, rights);
    base::store(&s->allowed_until_ns, until);
  }
  c.allowed_until = until;
  c.allowed_user = user;
  return 0;
}

void note_names_changed(Container& c) {
  uint64_t* const at = &c.segment.shared->names_changed_ns;
  // The kernel's times have the step of this clock: one of a later step is later than ours. Of two
  // of ours the second is, also for a program that reads times as doubles, as Python's import does.
  constexpr uint64_t kSeenByDoubles = 500;  // doubles are 238 ns apart until 2038, 477 ns after
  const uint64_t now = base::clock_ns(CLOCK_REALTIME_COARSE);
  uint64_t before = base::load(at);
  while (!base::compare_exchange(at, &before, (before < now ? now : before) + kSeenByDoubles)) {}
}

}  // namespace weir::layers::pack
