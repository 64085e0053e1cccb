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
constexpr int kNotAgain = O_CREAT | O_EXCL | O_TRUNC;  // of a program's open that is repeated

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

// each(&at, end) for each run of bytes between holes, which moves `at` on. *at: behind the last.
template <typename Each>
Result for_each_run(int from, uint64_t bytes, uint64_t* at, Each each) {
  while (*at < bytes) {
    const long data = base::system_call(SYS_lseek, from, static_cast<long>(*at), SEEK_DATA);
    if (data == -ENXIO) break;
    if (data < 0) return data;
    const long hole = base::system_call(SYS_lseek, from, data, SEEK_HOLE);
    if (hole < 0) return hole;
    const auto until = static_cast<uint64_t>(hole);
    const uint64_t end = until < bytes ? until : bytes;
    if (static_cast<uint64_t>(data) >= end) break;
    *at = static_cast<uint64_t>(data);
    if (const Result done = each(at, end); done != 0) return done;
    if (*at < end) break;  // it was cut meanwhile
  }
  return 0;
}

Result copy_bytes(int from, int to, char* memory, uint64_t bytes, const Publishing& how) {
  uint64_t at = 0;
  const Result copied = for_each_run(from, bytes, &at, [&](uint64_t* run, uint64_t end) {
    return copy_run(from, to, memory, run, end, how);
  });
  if (copied != 0 || at == bytes) return copied;
  return base::system_call(SYS_ftruncate, to, static_cast<long>(bytes));
}

// A whole piece, unless the file ends.
long read_piece(int fd, char* to, uint64_t bytes, uint64_t at) {
  uint64_t done = 0;
  while (done < bytes) {
    const long n = base::read_at(fd, to + done, bytes - done, at + done);
    if (n == -EINTR) continue;
    if (n < 0) return n;
    if (n == 0) break;
    done += static_cast<uint64_t>(n);
  }
  return static_cast<long>(done);
}

Result compare_bytes(int from, int to, char* memory, uint64_t bytes) {
  uint64_t at = 0;
  return for_each_run(from, bytes, &at, [&](uint64_t* run, uint64_t end) -> Result {
    for (; *run < end; *run += kPiece) {
      const uint64_t n = end - *run < kPiece ? end - *run : kPiece;
      const long is = read_piece(to, memory, n, *run);
      const long was = read_piece(from, memory + kPiece, n, *run);
      if (is < 0 || was < 0) return is < 0 ? is : was;
      if (is != was || memcmp(memory, memory + kPiece, static_cast<size_t>(is)) != 0)
        return -EBADMSG;
    }
    *run = end;
    return 0;
  });
}

// What is at the place is read from where it is, not from the node's memory, where the file system
// does as posix_fadvise(2) says.
Result compare_what_was_written(int from, int to, char* memory, uint64_t bytes) {
  base::system_call(SYS_fadvise64, to, 0, 0, POSIX_FADV_DONTNEED);
  return compare_bytes(from, to, memory, bytes);
}

constexpr long kMost = 64 << 10;  // bytes of an extended attribute, and of all their names

// Those that the place takes; without them the program would have got the error itself.
void copy_extended(int from, int to, char* room) {
  char* const value = room + kMost;
  const long n = base::system_call(SYS_flistxattr, from, reinterpret_cast<long>(room), kMost);
  for (long at = 0; at < n; at += static_cast<long>(strlen(room + at)) + 1) {
    const auto name = reinterpret_cast<long>(room + at), to_value = reinterpret_cast<long>(value);
    const long size = base::system_call(SYS_fgetxattr, from, name, to_value, kMost);
    if (size >= 0) base::system_call(SYS_fsetxattr, to, name, to_value, size, 0);
  }
}

// Whether each file has the extended attributes of the other. room: 2 * kPiece.
bool has_extended(int from, int to, char* room) {
  char *const value = room + kMost, *const other = value + kMost;
  const long n = base::system_call(SYS_flistxattr, from, reinterpret_cast<long>(room), kMost);
  for (long at = 0; at < n; at += static_cast<long>(strlen(room + at)) + 1) {
    const auto name = reinterpret_cast<long>(room + at);
    const long size =
        base::system_call(SYS_fgetxattr, from, name, reinterpret_cast<long>(value), kMost);
    if (size < 0 || size != base::system_call(SYS_fgetxattr, to, name,
                                              reinterpret_cast<long>(other), kMost) ||
        memcmp(value, other, static_cast<size_t>(size)) != 0)
      return false;
  }
  return n >= 0 || n == -EOPNOTSUPP;
}
bool has_same_extended(int from, int to, char* room) {
  return has_extended(from, to, room) && has_extended(to, from, room);
}

// Whom it belongs to changes only where the program changed it and the user may give it away; else
// it is the user's, as any file that is written anew. True: something changed.
bool take_owner(int to, const struct stat& is, const struct stat& about) {
  const auto group = static_cast<gid_t>(base::system_call(SYS_getegid));
  const gid_t wanted = about.st_gid != group ? about.st_gid : is.st_gid;
  if (is.st_uid == about.st_uid && is.st_gid == wanted) return false;
  return base::system_call(SYS_fchown, to, about.st_uid, wanted) == 0;
}

// It was made with its permissions, which the directory or the owner may have changed.
Result take_attributes(int to, const struct stat& about, struct stat* is) {
  if (stat_fd(to, is) != 0) return -EIO;
  bool changed = take_owner(to, *is, about);
  if (changed || (is->st_mode & 07777) != (about.st_mode & 07777)) {
    if (const long set = base::system_call(SYS_fchmod, to, about.st_mode & 07777); set != 0)
      return set;
    changed = true;
  }
  if (!changed) return 0;
  const long synced = base::system_call(SYS_fsync, to);
  return synced != 0 ? synced : stat_fd(to, is);
}

// *is: what is there then.
Result copy_whole(int from, int to, const Publishing& how, struct stat* is) {
  struct stat about;
  if (stat_fd(from, &about) != 0) return -EIO;
  const Mapped<char[2 * kPiece]> room;
  if (!room) return -ENOMEM;
  const auto bytes = static_cast<uint64_t>(about.st_size);
  Result result = copy_bytes(from, to, *room, bytes, how);
  copy_extended(from, to, *room);
  struct timespec times[2] = {about.st_atim, about.st_mtim};
  if (result == 0)
    result = base::system_call(SYS_utimensat, to, 0, reinterpret_cast<long>(times), 0);
  if (result == 0) result = base::system_call(SYS_fsync, to);
  if (result == 0) result = take_attributes(to, about, is);
  // A server may take fewer bytes than it says.
  if (result == 0 && is->st_size != about.st_size) result = -EIO;
  return result == 0 && how.compares
             ? compare_what_was_written(from, to, *room, bytes)
             : result;
}

// Beside the file, hidden; of one tier and file always the same, so that one that was left by a
// killed process is written over.
bool unfinished_name(const Tier& tier, uint64_t inode, char* to, size_t size) {
  return !base::Writer(to, size)
              .add(kUnfinished)
              .add_number(tier.control->id)
              .add("-")
              .add_number(inode)
              .cut();
}

// One file on its way. The directory of its place is open: its path is looked up once.
struct Move {
  const Tier& tier;
  const char* key;
  const Publishing& how;
  int above;
  char unfinished[64];
  struct stat made;
  bool is_there;  // the file at its place is the one on the tier: nothing was copied
};

long at_place(long call, const Move& move, const char* name, long c = 0) {
  return base::system_call(call, move.above, reinterpret_cast<long>(name), c);
}

// The name is there whatever happens to the node, before the tier's bytes may go.
long give_name(const Move& move) {
  const long renamed = base::system_call(
      SYS_renameat2, move.above, reinterpret_cast<long>(move.unfinished), move.above,
      reinterpret_cast<long>(last_of(move.key).data), 0);
  if (renamed != 0) return renamed;
  const long synced = base::system_call(SYS_fsync, move.above);
  return synced == -EINVAL || synced == -EBADF ? 0 : synced;  // it has no such call
}

// Whether the version at the place has got a second name since it was looked at: a rename would
// leave that one with the bytes of before.
bool is_linked(const Move& move, const Real& real) {
  struct stat is;
  return real != kNoReal &&
         base::system_call(SYS_newfstatat, move.above,
                           reinterpret_cast<long>(last_of(move.key).data),
                           reinterpret_cast<long>(&is), AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(is.st_mode) && is.st_nlink > 1 && is.st_dev == real.device &&
         is.st_ino == real.inode;
}

// The same bytes into the file at its place, which others may read meanwhile. No copy stays: one
// would be of one name alone. A process that is killed in it leaves the file newer on the tier.
Result write_in_place(const Move& move, Found& now, int source, Descriptor* goes_on) {
  const char* const name = last_of(move.key).data;
  const Descriptor to(base::open_at(move.above, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (to.error() != 0) return to.error();
  if (const long emptied = base::resize(to.get(), 0); emptied != 0) return emptied;
  struct stat made;
  if (const Result copied = copy_whole(source, to.get(), move.how, &made); copied != 0)
    return copied;
  at_place(SYS_unlinkat, move, move.unfinished);
  if (move.how.opened != nullptr) {
    goes_on->reset(base::open_at(move.above, name, move.how.flags & ~kNotAgain));
    if (goes_on->error() != 0) return goes_on->error();
  }
  if (move.how.only_idle || move.how.opened != nullptr) {
    drop(move.tier, now);
    return 0;
  }
  now.mark.real = real_of(made);
  return write_mark(move.tier, now.inode, now.mark);
}

// Under the name's lock: the bytes are those of the file that is there still.
Result finish(const Move& move, const Found& was, int source, Descriptor* goes_on) {
  const Publishing& how = move.how;
  const Lock lock(move.tier, move.key);
  if (!lock.held()) return -ENOLCK;
  const Mapped<Found> room;
  if (!room) return -ENOMEM;
  Found& now = *room;
  find(move.tier, move.key, &now);
  if (!is_newer(now) || now.inode != was.inode || now.mark.other[0] != 0) return -EAGAIN;
  if (how.only_idle && (now.mark.generation != was.mark.generation ||
                        now.mark.changes != was.mark.changes || !is_idle(source)))
    return -EAGAIN;
  if (!move.is_there) {
    if (is_linked(move, now.mark.real)) return write_in_place(move, now, source, goes_on);
    if (const long named = give_name(move); named != 0) return named;
  }
  if (how.opened != nullptr) {  // its only user goes on at the place
    drop(move.tier, now);
    return 0;
  }
  now.mark.real = real_of(move.made);
  now.mark.brought = true;
  if (!how.only_idle) return write_mark(move.tier, now.inode, now.mark);
  const CountChange change(move.tier);
  if (!is_counted(now.mark)) count_bytes(move.tier, now.bytes);
  now.mark.state = State::kCopy;
  if (how.keep) return write_mark(move.tier, now.inode, now.mark);
  drop(move.tier, now);
  return 0;
}

Result begin(const Tier& tier, const char* key, const Publishing& how, Found* found,
             Descriptor* source) {
  const Lock lock(tier, key);
  if (!lock.held()) return -ENOLCK;
  find(tier, key, found);
  settle(tier, *found);
  if (!is_newer(*found)) return -ENOENT;
  if (strcmp(found->mark.key, key) != 0) return -EAGAIN;  // renamed: by its other name
  source->reset(open_source(*found));
  if (source->error() != 0) return source->error();
  if (how.only_idle && !is_idle(source->get())) return -EBUSY;
  return how.only_idle && !found->mark.closed && !how.unfinished ? -EOWNERDEAD : 0;
}

bool is_same(const struct timespec& a, const struct timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// Whether the file was opened to be written and not changed since it went to its place, as programs
// open files that they may change, databases above all. Its time says no at once; where it is the
// one of before, bytes are compared: stores into a mapping change no time on tmpfs.
bool is_at_place(Move& move, const Mark& mark, int source, const struct stat& about) {
  if (move.how.opened != nullptr || !mark.brought ||
      static_cast<uint64_t>(about.st_blocks) * 512 < static_cast<uint64_t>(about.st_size))
    return false;  // of holes one byte for another would be read
  const Descriptor at(base::open_at(move.above, last_of(move.key).data,
                                    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat& is = move.made;
  if (at.error() != 0 || stat_fd(at.get(), &is) != 0 || !is_copy_of(mark, is) ||
      is.st_size != about.st_size || !is_same(is.st_mtim, about.st_mtim) ||
      is.st_mode != about.st_mode || is.st_uid != about.st_uid || is.st_gid != about.st_gid)
    return false;
  const Mapped<char[2 * kPiece]> room;
  if (!room || !has_same_extended(source, at.get(), *room) ||
      compare_bytes(source, at.get(), *room, static_cast<uint64_t>(about.st_size)) != 0)
    return false;
  struct timespec times[2] = {about.st_atim, {0, UTIME_OMIT}};
  return stat_fd(at.get(), &is) == 0 &&
         (is_same(is.st_atim, about.st_atim) ||
          base::system_call(SYS_utimensat, at.get(), 0, reinterpret_cast<long>(times), 0) == 0);
}

long make_unfinished(const Move& move, unsigned mode) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const char* const name = move.unfinished;
  const long fd = base::open_at(move.above, name, kFlags, static_cast<int>(mode));
  if (fd != -EEXIST) return fd;
  at_place(SYS_unlinkat, move, name);
  return base::open_at(move.above, name, kFlags, static_cast<int>(mode));
}

Result bring(Move& move, const Found& found, int source) {
  struct stat about;
  if (stat_fd(source, &about) != 0) return -EIO;
  Descriptor goes_on(-EBADF);
  move.is_there = is_at_place(move, found.mark, source, about);
  if (move.is_there) return finish(move, found, source, &goes_on);
  const bool goes = move.how.opened != nullptr;
  const Descriptor to(make_unfinished(move, goes ? 0600 : about.st_mode & 07777));
  if (to.error() != 0) return to.error();
  if (goes) {
    goes_on.reset(base::open_at(move.above, move.unfinished, move.how.flags & ~kNotAgain));
    if (goes_on.error() != 0) return goes_on.error();
  }
  Result result = copy_whole(source, to.get(), move.how, &move.made);
  if (result == 0) result = finish(move, found, source, &goes_on);
  if (result == 0 && goes) *move.how.opened = goes_on.release();
  return result;
}

// Of a file that is newer, and open to read as `source`.
Result bring_from(const Tier& tier, const char* key, const Publishing& how, const Found& found,
                  int source) {
  const Mapped<char[kKeyBytes]> directory;
  if (!directory) return -ENOMEM;
  const size_t above = static_cast<size_t>(last_of(key).data - key);
  base::Writer(*directory, kKeyBytes).add({key, above}).add(".");
  Descriptor at(base::open_at(AT_FDCWD, *directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (at.error() == -EACCES)  // it may be written, and not be read: it is not synchronized
    at.reset(base::open_at(AT_FDCWD, *directory, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (at.error() != 0) return at.error();
  Move move{tier, key, how, at.get(), {}, {}, false};
  if (!unfinished_name(tier, found.inode, move.unfinished, sizeof move.unfinished))
    return -ENAMETOOLONG;
  const Result result = bring(move, found, source);
  if (result != 0) at_place(SYS_unlinkat, move, move.unfinished);
  return result;
}

}  // namespace

// What is noted is for those who look at the tier, and of no file that was removed meanwhile.
Result publish(const Tier& tier, const char* key, const Publishing& how) {
  const Lock turn(tier, key, Lock::kPublishing);
  if (!turn.held()) return -ENOLCK;
  const Mapped<Found> found;
  if (!found) return -ENOMEM;
  Descriptor source(-EBADF);
  if (const Result begun = begin(tier, key, how, &*found, &source); begun != 0) return begun;
  const Result result = bring_from(tier, key, how, *found, source.get());
  if (result == 0) forget_failure(tier, found->inode);
  if (result == 0 || result == -EAGAIN || result == -EBUSY) return result;
  const Lock name(tier, key);
  const Mapped<Found> now;
  if (!name.held() || !now) return result;
  find(tier, key, &*now);
  if (now->there && now->inode == found->inode)
    note_failure(tier, found->inode, found->mark.generation, result);
  return result;
}

}  // namespace weir::stage
