// SPDX-License-Identifier: Apache-2.0
// This node's container as an open file of this process.
#include <errno.h>
#include <string.h>

#include "layers/machinery/stack/private.h"
#include "layers/pack/container.h"
#include "layers/pack/place.h"
#include "layers/pack/transfer.h"

namespace weir::layers::pack {
namespace {

Process& self(const Container& c) { return c.segment.shared->processes[c.process]; }

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
  const long done = write_at(fd, record, sizeof record, 0);
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
  identify_open(c.file, &s->file);
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

namespace {

bool set_path(Container& c, const char* name) {
  return path_in(c, base::text(name), c.path, sizeof c.path);
}

// An open container becomes the one of this process, which takes part in it as this node.
long use_file(Container& c, long fd, bool first) {
  if (const long locked = lock_as_node(static_cast<int>(fd), first); locked != 0) {
    base::close_fd(static_cast<int>(fd));
    return locked;
  }
  if (!stack::keep_private(static_cast<int>(fd), &c.file)) return -EMFILE;
  close_directory(c);
  if (c.segment.shared->magic == kSharedMagic) base::store(&self(c).file, c.file + 1);
  return c.file;
}

// The container that another process of the node has open, without a look at the directory. -errno.
long open_again(const Container& c, const Process& p) {
  char path[64];
  const int file = base::load(&p.file);
  const uint64_t who = base::load(&p.identity);
  if (file == 0 || who == 0 || who == packed_identity(node::self())) return -ENOENT;
  base::Writer(path, sizeof path)
      .add("/proc/").add_number(unpacked_identity(who).pid)
      .add("/fd/").add_number(static_cast<uint64_t>(file - 1));
  const long seen = base::open_at(AT_FDCWD, path, O_PATH | O_CLOEXEC);
  if (base::failed(seen)) return seen;
  base::Identity is{};
  long fd = -ESTALE;
  if (identify_open(static_cast<int>(seen), &is) && is == c.segment.shared->file) {
    base::Writer(path, sizeof path).add("/proc/self/fd/").add_number(static_cast<uint64_t>(seen));
    fd = base::open_at(AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  }
  base::close_fd(static_cast<int>(seen));
  return fd;
}

long take_as_others(Container& c) {
  const Shared* const s = c.segment.shared;
  const base::HoldsDescriptor held;
  for (const Process& p : s->processes) {
    if (base::load(&p.file) == 0) continue;
    const long fd = open_again(c, p);
    if (base::failed(fd)) continue;
    c.writable = true;
    return set_path(c, s->own) ? use_file(c, fd, false) : -ENAMETOOLONG;
  }
  return -ENOENT;
}

}  // namespace

long take_file(Container& c, const char* name, bool first, int flags) {
  if (!set_path(c, name)) return -ENAMETOOLONG;
  const base::HoldsDescriptor held;
  c.writable = true;
  long fd = open_in(c, name, O_RDWR | O_CLOEXEC | flags, 0666);
  if ((fd == -EACCES || fd == -EROFS || fd == -EPERM) && flags == 0) {
    c.writable = false;
    fd = open_in(c, name, O_RDONLY | O_CLOEXEC);
  }
  return base::failed(fd) ? fd : use_file(c, fd, first);
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
  long fd = take_as_others(c);
  if (base::failed(fd)) fd = take_file(c, s->own, false, 0);
  if (base::failed(fd)) return static_cast<int>(-fd);
  return makes && !c.writable ? EROFS : 0;
}

}  // namespace weir::layers::pack
