// SPDX-License-Identifier: Apache-2.0
// This node's container as an open file of this process.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "layers/machinery/stack/private.h"
#include "layers/pack/container.h"
#include "layers/pack/place.h"

namespace weir::layers::pack {
namespace {

// The lock of a node: one process asks for it alone, to see whether another node has the file, and
// all of the node's then have it together.
long lock_as_node(int fd, bool first) {
  struct flock range {};
  range.l_whence = SEEK_SET;
  range.l_len = 1;
  if (first) {
    range.l_type = F_WRLCK;
    const long alone =
        base::system_call(SYS_fcntl, fd, F_OFD_SETLK, reinterpret_cast<long>(&range));
    if (alone == -EBADF) return 0;  // open for reading alone: nothing is written
    if (base::failed(alone)) return -EAGAIN;
  }
  range.l_type = F_RDLCK;
  base::system_call(SYS_fcntl, fd, F_OFD_SETLK, reinterpret_cast<long>(&range));
  return 0;
}

int write_owner(int fd) {
  Entry e{};
  e.name = kOwnerName;
  e.name_bytes = sizeof kOwnerName - 1;
  e.state = kOwner;
  char record[kOwnerBytes];
  encode_local(e, record);
  const long done = base::write_at(fd, record, sizeof record, 0);
  if (done == static_cast<long>(sizeof record)) return 0;
  return done < 0 ? static_cast<int>(-done) : ENOSPC;
}

// A new one. Another node may be faster: then this node's has the node in its name.
int make_file(Container& c) {
  Shared* const s = c.segment.shared;
  for (int i = 0; i < 2; ++i) {
    const long fd = take_file(c, s->own, true, O_CREAT | O_EXCL);
    if (!base::failed(fd)) return begin_file(c);
    // EAGAIN: another node has looked at the new file before this one locked it, and has it now.
    const bool others = fd == -EEXIST || fd == -EAGAIN;
    if (!others || strchr(s->own, '@') != nullptr) return static_cast<int>(-fd);
    char* const suffix = s->own + strlen(s->own) - 4;
    base::Writer own(suffix, static_cast<size_t>(s->own + sizeof s->own - suffix));
    own.add("@");
    add_node(own);
    own.add(".zip");
  }
  return EEXIST;
}

}  // namespace

int begin_file(Container& c) {
  Shared* const s = c.segment.shared;
  const int error = write_owner(c.file);
  if (error != 0) {
    base::unlink_path(c.path);
    stack::close_private(&c.file);
  }
  if (s->end < kOwnerBytes) s->end = kOwnerBytes;
  s->allocated = s->end;
  s->records_end = s->end;
  base::store(&s->has_file, error == 0 ? 1u : 0u);
  made_containers(true);
  return error;
}

void end_lock(const Container& c) {
  struct flock range {};
  range.l_type = F_UNLCK;
  range.l_whence = SEEK_SET;
  range.l_len = 1;
  if (c.file >= 0)
    base::system_call(SYS_fcntl, c.file, F_OFD_SETLK, reinterpret_cast<long>(&range));
}

long take_file(Container& c, const char* name, bool first, int flags) {
  base::Writer path(c.path, sizeof c.path);
  path.add({c.directory, c.directory_bytes}).add("/").add(name);
  if (path.cut()) return -ENAMETOOLONG;
  const base::HoldsDescriptor held;
  c.writable = true;
  long fd = base::open_at(AT_FDCWD, c.path, O_RDWR | O_CLOEXEC | flags, 0666);
  if ((fd == -EACCES || fd == -EROFS || fd == -EPERM) && flags == 0) {
    c.writable = false;
    fd = base::open_at(AT_FDCWD, c.path, O_RDONLY | O_CLOEXEC);
  }
  if (base::failed(fd)) return fd;
  if (const long locked = lock_as_node(static_cast<int>(fd), first); locked != 0) {
    base::close_fd(static_cast<int>(fd));
    return locked;
  }
  return stack::keep_private(static_cast<int>(fd), &c.file) ? c.file : -EMFILE;
}

int may_change(Container& c) {
  constexpr long kFaccessat2 = 439, kEffective = 0x200;  // AT_EACCESS
  const auto user = static_cast<uint32_t>(base::system_call(SYS_geteuid));
  const uint64_t now = base::now_ns();
  if (now < c.allowed_until && user == c.allowed_user) return 0;
  const auto path = reinterpret_cast<long>(c.directory);
  long may = base::system_call(kFaccessat2, AT_FDCWD, path, W_OK | X_OK, kEffective);
  if (may == -ENOSYS) may = base::system_call(SYS_faccessat, AT_FDCWD, path, W_OK | X_OK);
  if (may != 0) return static_cast<int>(-may);  // asked again: it may have been changed since
  c.allowed_until = now + 1'000'000'000;
  c.allowed_user = user;
  return 0;
}

int open_file(Container& c, bool makes) {
  Shared* const s = c.segment.shared;
  if (c.file >= 0 && c.file_number == base::load(&s->file_number))
    return makes && !c.writable ? EROFS : 0;
  if (c.file >= 0) stack::close_private(&c.file);  // it has been removed since
  c.file_number = base::load(&s->file_number);
  if (base::load(&s->has_file) == 0) {
    if (!makes) return ENOENT;
    const base::HoldsDescriptor held;
    const long segment = base::open_at(AT_FDCWD, c.segment.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (base::failed(segment)) return static_cast<int>(-segment);
    long locked;
    do locked = base::system_call(SYS_flock, segment, LOCK_EX);
    while (locked == -EINTR);
    const int error = base::load(&s->has_file) == 0 ? make_file(c) : 0;
    base::close_fd(static_cast<int>(segment));
    if (error != 0) return error;
  }
  if (c.file >= 0) return 0;
  const long fd = take_file(c, s->own, false, 0);
  if (base::failed(fd)) return static_cast<int>(-fd);
  return makes && !c.writable ? EROFS : 0;
}

}  // namespace weir::layers::pack
