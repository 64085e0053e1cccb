// SPDX-License-Identifier: Apache-2.0
// From the tier to the file's place. Two who publish one file take turns: the later copies later
// bytes. The name's lock is held before and after the copy, not meanwhile; an opening for writing
// in between gives the mark another generation.
#include <errno.h>
#include <linux/fs.h>
#include <string.h>

#include "layers/stage/tier.h"

namespace weir::stage {
namespace {

constexpr uint64_t kPiece = 1 << 20;

// Whether no descriptor of any process, and no mapping, may write the file. It is open to read.
bool is_idle(int fd) {
  if (base::system_call(SYS_fcntl, fd, F_SETLEASE, F_RDLCK) != 0) return false;
  base::system_call(SYS_fcntl, fd, F_SETLEASE, F_UNLCK);
  return true;
}

class Descriptor {
 public:
  explicit Descriptor(long fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) base::close_fd(static_cast<int>(fd_));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  long error() const { return fd_ < 0 ? fd_ : 0; }
  int get() const { return static_cast<int>(fd_); }

 private:
  long fd_;
};

// The owner may have been refused to read it, which is no reason to lose it.
long open_source(const Found& found) {
  long fd = base::open_at(AT_FDCWD, found.tree, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  struct stat about;
  if (fd != -EACCES || stat_path(found.tree, &about) != 0) return fd;
  const auto path = reinterpret_cast<long>(found.tree);
  base::system_call(SYS_fchmodat, AT_FDCWD, path, (about.st_mode & 07777) | 0400);
  fd = base::open_at(AT_FDCWD, found.tree, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  base::system_call(SYS_fchmodat, AT_FDCWD, path, about.st_mode & 07777);
  return fd;
}

Result write_all(int fd, const char* from, uint64_t bytes, uint64_t at) {
  for (uint64_t done = 0; done < bytes;) {
    const long n = base::write_at(fd, from + done, bytes - done, at + done);
    if (n == -EINTR) continue;
    if (n <= 0) return n < 0 ? n : -ENOSPC;
    done += static_cast<uint64_t>(n);
  }
  return 0;
}

// One run of bytes; *at moves on. Holes are left out.
Result copy_run(int from, int to, char* memory, uint64_t* at, uint64_t end, const Publishing& how) {
  while (*at < end) {
    const uint64_t left = end - *at;
    const long n = base::read_at(from, memory, left < kPiece ? left : kPiece, *at);
    if (n == -EINTR) continue;
    if (n < 0) return n;
    if (n == 0) break;  // it was cut meanwhile
    const auto bytes = static_cast<uint64_t>(n);
    if (const Result written = write_all(to, memory, bytes, *at); written != 0) return written;
    *at += bytes;
    if (how.moved != nullptr) how.moved(how.with, bytes);
  }
  return 0;
}

Result copy_bytes(int from, int to, char* memory, uint64_t bytes, const Publishing& how) {
  for (uint64_t at = 0; at < bytes;) {
    const long data = base::system_call(SYS_lseek, from, static_cast<long>(at), SEEK_DATA);
    if (data == -ENXIO) break;
    if (data < 0) return data;
    const long hole = base::system_call(SYS_lseek, from, data, SEEK_HOLE);
    if (hole < 0) return hole;
    at = static_cast<uint64_t>(data);
    const uint64_t end = static_cast<uint64_t>(hole) < bytes ? static_cast<uint64_t>(hole) : bytes;
    if (at >= end) break;
    if (const Result copied = copy_run(from, to, memory, &at, end, how); copied != 0) return copied;
    if (at < end) break;
  }
  return base::system_call(SYS_ftruncate, to, static_cast<long>(bytes));
}

// Those that the place takes; without them the program would have got the error itself.
void copy_extended(int from, int to, char* room) {
  constexpr long kMost = 64 << 10;
  char* const value = room + kMost;
  const long n = base::system_call(SYS_flistxattr, from, reinterpret_cast<long>(room), kMost);
  for (long at = 0; at < n; at += static_cast<long>(strlen(room + at)) + 1) {
    const auto name = reinterpret_cast<long>(room + at), to_value = reinterpret_cast<long>(value);
    const long size = base::system_call(SYS_fgetxattr, from, name, to_value, kMost);
    if (size >= 0) base::system_call(SYS_fsetxattr, to, name, to_value, size, 0);
  }
}

// Whom it belongs to changes only where the user may give it away; else it is the user's, as any
// file that is written anew.
Result take_attributes(int to, const struct stat& about) {
  struct stat is;
  if (stat_fd(to, &is) != 0) return -EIO;
  if (is.st_uid != about.st_uid || is.st_gid != about.st_gid)
    base::system_call(SYS_fchown, to, about.st_uid, about.st_gid);
  if (const long set = base::system_call(SYS_fchmod, to, about.st_mode & 07777); set != 0)
    return set;
  struct timespec times[2] = {about.st_atim, about.st_mtim};
  return base::system_call(SYS_utimensat, to, 0, reinterpret_cast<long>(times), 0);
}

Result copy_whole(int from, int to, const Publishing& how) {
  struct stat before, about;
  if (stat_fd(from, &before) != 0) return -EIO;
  const long memory = base::map(kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(memory)) return memory;
  auto* const room = reinterpret_cast<char*>(memory);
  Result result = copy_bytes(from, to, room, static_cast<uint64_t>(before.st_size), how);
  copy_extended(from, to, room);
  base::unmap(room, kPiece);
  if (result == 0) result = take_attributes(to, before);
  if (result == 0) result = base::system_call(SYS_fsync, to);
  // A server may take fewer bytes than it says.
  if (result == 0 && (stat_fd(to, &about) != 0 || about.st_size != before.st_size)) result = -EIO;
  return result;
}

// Beside the file, hidden; of one tier and file always the same, so that one that was left by a
// killed process is written over.
bool unfinished_name(const Tier& tier, const char* key, uint64_t inode, char* to) {
  const base::Text last = last_of(key);
  return !base::Writer(to, kPathBytes)
              .add({key, static_cast<size_t>(last.data - key)})
              .add(kUnfinished)
              .add_number(tier.control->id)
              .add("-")
              .add_number(inode)
              .cut();
}

void sync_directory(const char* key, char* room) {
  const base::Text last = last_of(key);
  base::Writer(room, kPathBytes).add({key, static_cast<size_t>(last.data - key)}).add(".");
  const Descriptor above(base::open_at(AT_FDCWD, room, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (above.error() == 0) base::system_call(SYS_fsync, above.get());
}

// The name is given, under its lock: the bytes are those of the file that is there still.
Result give_name(const Tier& tier, const char* key, const Found& was, int source, const char* from,
                 const Publishing& how) {
  const Lock lock(tier, key);
  if (!lock.held()) return -ENOLCK;
  const Mapped<Found> room;
  if (!room) return -ENOMEM;
  Found& now = *room;
  find(tier, key, &now);
  if (!is_newer(now) || now.inode != was.inode || now.mark.other[0] != 0) return -EAGAIN;
  if (how.only_idle && (now.mark.generation != was.mark.generation ||
                        now.mark.changes != was.mark.changes || !is_idle(source)))
    return -EAGAIN;
  const long renamed = base::system_call(SYS_renameat2, AT_FDCWD, reinterpret_cast<long>(from),
                                         AT_FDCWD, reinterpret_cast<long>(key), 0);
  if (renamed != 0) return renamed;
  struct stat about;
  now.mark.real = stat_path(key, &about) == 0 ? real_of(about) : kNoReal;
  if (!how.only_idle) return write_mark(tier, now.inode, now.mark);
  now.mark.state = State::kCopy;
  if (how.keep) return write_mark(tier, now.inode, now.mark);
  drop(tier, now);
  return 0;
}

Result begin(const Tier& tier, const char* key, const Publishing& how, Found* found, long* source) {
  const Lock lock(tier, key);
  if (!lock.held()) return -ENOLCK;
  find(tier, key, found);
  settle(tier, *found);
  if (!is_newer(*found)) return -ENOENT;
  if (strcmp(found->mark.key, key) != 0) return -EAGAIN;  // renamed: by its other name
  *source = open_source(*found);
  if (*source < 0) return *source;
  if (how.only_idle && !is_idle(static_cast<int>(*source))) return -EBUSY;
  return how.only_idle && !found->mark.closed && !how.unfinished ? -EOWNERDEAD : 0;
}

}  // namespace

Result publish(const Tier& tier, const char* key, const Publishing& how) {
  const Lock turn(tier, key, Lock::kPublishing);
  if (!turn.held()) return -ENOLCK;
  const Mapped<Found> room;
  const Mapped<char[kPathBytes]> name;
  if (!room || !name) return -ENOMEM;
  Found& found = *room;
  long source = -1;
  const Result begun = begin(tier, key, how, &found, &source);
  const Descriptor from(source);
  if (begun != 0) return begun;
  char* const unfinished = *name;
  if (!unfinished_name(tier, key, found.inode, unfinished)) return -ENAMETOOLONG;
  base::unlink_path(unfinished);
  const Descriptor to(base::open_at(AT_FDCWD, unfinished,
                                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (to.error() != 0) return to.error();
  Result result = copy_whole(from.get(), to.get(), how);
  if (result == 0) result = give_name(tier, key, found, from.get(), unfinished, how);
  if (result != 0) base::unlink_path(unfinished);
  else sync_directory(key, unfinished);
  return result;
}

}  // namespace weir::stage
