// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/node/private.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "layers/machinery/node/place.h"
#include "base/clock.h"

namespace weir::node {
namespace {

constexpr char kKey[] = "key";
constexpr int kTries = 64;

// Closed when it goes, if it is one.
class Descriptor {
 public:
  explicit Descriptor(long fd) : fd_(fd) {}
  ~Descriptor() {
    if (good()) base::close_fd(number());
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  bool good() const { return !base::failed(fd_); }
  int number() const { return static_cast<int>(fd_); }
  long error() const { return fd_; }
  long release() { return base::exchange(&fd_, long{-1}); }

 private:
  long fd_;
};

bool stat_of(int fd, struct stat* to) {
  return base::system_call(SYS_fstat, fd, reinterpret_cast<long>(to)) == 0;
}

bool stat_at(int directory, const char* name, struct stat* to) {
  return base::system_call(SYS_newfstatat, directory, reinterpret_cast<long>(name),
                           reinterpret_cast<long>(to), AT_SYMLINK_NOFOLLOW) == 0;
}

bool is_owned(const struct stat& about) {
  return about.st_uid == static_cast<uid_t>(base::system_call(SYS_geteuid)) &&
         (about.st_mode & 077) == 0;
}

// In a directory that others may write to and that is not sticky anybody may put another one in the
// place of ours.
bool keeps_names(int directory) {
  struct stat about;
  return stat_of(directory, &about) &&
         ((about.st_mode & 022) == 0 || (about.st_mode & S_ISVTX) != 0);
}

long open_directory(int parent, const char* path, int more = 0) {
  return base::open_at(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | more);
}

// Made only where it is not there: for that the kernel locks the directory above, and all ranks of
// a node come here at once.
long open_or_make(int parent, const char* name, bool make) {
  const long fd = open_directory(parent, name, O_NOFOLLOW);
  if (fd != -ENOENT || !make) return fd;
  base::system_call(SYS_mkdirat, parent, reinterpret_cast<long>(name), 0700);
  return open_directory(parent, name, O_NOFOLLOW);
}

// A directory that is the user's alone, on its parent's device.
long enter(int parent, const char* name, bool make) {
  Descriptor inner(open_or_make(parent, name, make));
  struct stat outside, inside;
  if (!inner.good()) return inner.error();
  if (!stat_of(parent, &outside) || !stat_of(inner.number(), &inside)) return -EPERM;
  return is_owned(inside) && inside.st_dev == outside.st_dev ? inner.release() : -EPERM;
}

// A path's parts: of /dev/shm/weir.<uid>.<job>/<node> the last two; of any other, where only a
// directory that was named in a command can be, the last.
struct Parts {
  char above[kPathBytes];
  char job[kPathBytes];  // empty: none
  const char* leaf;
};

bool split(const char* whole, Parts* to) {
  const char* slash = strrchr(whole, '/');
  if (slash == nullptr || slash == whole) return false;
  to->leaf = slash + 1;
  to->job[0] = 0;
  base::Writer above(to->above, sizeof to->above);
  if (strncmp(whole, kOurs, sizeof kOurs - 1) != 0)
    return !above.add({whole, static_cast<size_t>(slash - whole)}).cut();
  const char* const name = whole + sizeof "/dev/shm/" - 1;
  base::Writer job(to->job, sizeof to->job);
  return name < slash && !above.add("/dev/shm").cut() &&
         !job.add({name, static_cast<size_t>(slash - name)}).cut();
}

long enter_job(const Parts& parts, bool make) {
  Descriptor above(open_directory(AT_FDCWD, parts.above));
  if (!above.good()) return above.error();
  if (parts.job[0] == 0) return above.release();
  return keeps_names(above.number()) ? enter(above.number(), parts.job, make) : -EPERM;
}

long enter_node(const char* whole, bool make) {
  Parts parts;
  if (!split(whole, &parts)) return -ENOENT;
  const Descriptor job(enter_job(parts, make));
  return job.good() ? enter(job.number(), parts.leaf, make) : job.error();
}

// Not blocking: somebody may have put a pipe there.
long open_private(const Descriptor& directory, const char* name, int flags) {
  if (!directory.good()) return directory.error();
  Descriptor file(base::open_at(directory.number(), name,
                                flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600));
  if (!file.good()) return file.error();
  struct stat outside, inside;
  if (!is_private_file(file.number()) || !stat_of(directory.number(), &outside) ||
      !stat_of(file.number(), &inside))
    return -EPERM;
  return inside.st_dev == outside.st_dev ? file.release() : -EPERM;
}

long open_same(const Descriptor& directory, const char* name, const base::Identity& was) {
  Descriptor file(open_private(directory, name, O_RDWR));
  base::Identity is{};
  if (!file.good()) return file.error();
  return base::identify(file.number(), &is) && is == was ? file.release() : -ESTALE;
}

bool random_bits(Secret* to) {
  constexpr long kAtOnce = 1;  // GRND_NONBLOCK
  return base::system_call(SYS_getrandom, reinterpret_cast<long>(to), sizeof *to, kAtOnce) ==
         sizeof *to;
}

// A file of another name with the bits in it gets this one: nobody reads it before they are there,
// and the first stays.
void make_key(const Descriptor& directory) {
  Secret fresh;
  char name[64];
  base::Writer(name, sizeof name)
      .add(kKey)
      .add(".")
      .add_number(static_cast<uint64_t>(base::thread_id()))
      .add(".")
      .add_number(base::ticks());
  if (!random_bits(&fresh)) return;
  const Descriptor file(open_private(directory, name, O_RDWR | O_CREAT | O_EXCL));
  if (!file.good()) return;
  const int at = directory.number();
  const auto from = reinterpret_cast<long>(name), to = reinterpret_cast<long>(kKey);
  constexpr long kNoReplace = 1;
  if (base::write_fd(file.number(), &fresh, sizeof fresh) == sizeof fresh &&
      base::system_call(SYS_renameat2, at, from, at, to, kNoReplace) == -EINVAL) {
    base::system_call(SYS_linkat, at, from, at, to, 0);  // no such flag on this file system
  }
  base::system_call(SYS_unlinkat, at, from, 0);
}

}  // namespace

bool make_private(const char* node_directory) {
  return Descriptor(enter_node(node_directory, true)).good();
}

bool is_private_file(int fd) {
  struct stat about;
  return stat_of(fd, &about) && is_owned(about) && S_ISREG(about.st_mode) && about.st_nlink == 1;
}

bool is_own_socket(int directory, const char* name) {
  struct stat about;
  return stat_at(directory, name, &about) && S_ISSOCK(about.st_mode) &&
         about.st_uid == static_cast<uid_t>(base::system_call(SYS_geteuid));
}

long open_own_directory() {
  const char* whole = own_directory();
  return whole != nullptr ? enter_node(whole, false) : -ENOENT;
}

long open_job() {
  const char* whole = own_directory();
  Parts parts;
  return whole != nullptr && split(whole, &parts) ? enter_job(parts, false) : -ENOENT;
}

long open_inside(const char* name, int flags) {
  return open_private(Descriptor(open_own_directory()), name, flags);
}
long open_in_job(const char* name, int flags) {
  return open_private(Descriptor(open_job()), name, flags);
}
long open_again(const char* name, const base::Identity& was) {
  return open_same(Descriptor(open_own_directory()), name, was);
}
long open_in_job_again(const char* name, const base::Identity& was) {
  return open_same(Descriptor(open_job()), name, was);
}

long unlink_inside(const char* name, const base::Identity& was) {
  const Descriptor directory(open_own_directory());
  if (!directory.good()) return directory.error();
  struct stat about;
  if (!stat_at(directory.number(), name, &about) ||
      !(was ==
        base::Identity{static_cast<uint64_t>(about.st_dev), static_cast<uint64_t>(about.st_ino)})) {
    return -ESTALE;
  }
  return base::system_call(SYS_unlinkat, directory.number(), reinterpret_cast<long>(name), 0);
}

bool read_secret(Secret* to) {
  const Descriptor directory(open_own_directory());
  for (int tries = 0; directory.good() && tries < kTries; ++tries) {
    const Descriptor file(open_private(directory, kKey, O_RDONLY));
    if (file.good()) return base::read_fd(file.number(), to, sizeof *to) == sizeof *to;
    if (file.error() == -ENOENT) make_key(directory);
    else base::yield();  // it has two names for a moment
  }
  return false;
}

}  // namespace weir::node
