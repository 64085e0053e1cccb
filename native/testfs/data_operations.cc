// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "testfs/operations.h"

namespace weir::testfs {
namespace {

constexpr size_t kBufferBytes = 1 << 20;  // what the kernel asks for at most: max_read

// One per thread, kept, so that its pages are touched only once.
char* read_buffer() {
  static thread_local char* buffer = nullptr;
  if (buffer == nullptr) {
    void* at =
        mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED) buffer = static_cast<char*>(at);
  }
  return buffer;
}

int descriptor(const fuse_file_info* file) { return static_cast<int>(file->fh); }

// The flags of the backing file's open. O_DIRECT is between the program and the mount: our buffers
// are not aligned for it. With write-back the kernel reads what it writes parts of, and puts
// appended bytes where they belong itself.
int backing_flags(const Mount& mount, int flags) {
  flags &= ~(O_NOFOLLOW | O_DIRECT | O_CREAT | O_EXCL);
  if (mount.writeback) {
    if ((flags & O_ACCMODE) == O_WRONLY) flags = (flags & ~O_ACCMODE) | O_RDWR;
    flags &= ~O_APPEND;
  }
  return flags | O_CLOEXEC;
}

// libfuse 3.14 has no member for FOPEN_PARALLEL_DIRECT_WRITES, without which the kernel sends
// direct writes to one file one after the other; so the answer to an open is put together here.
fuse_open_out open_answer(const Mount& mount, int fd) {
  fuse_open_out answer = {};
  answer.fh = static_cast<uint64_t>(fd);
  const bool direct = mount.state.options.direct_io.load(std::memory_order_relaxed) != 0;
  // With a page cache the kernel itself drops what a changed time or size shows to be old.
  answer.open_flags = direct ? FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES : FOPEN_KEEP_CACHE;
  return answer;
}

fuse_entry_out entry_answer(const fuse_entry_param& entry) {
  fuse_entry_out answer = {};
  answer.nodeid = entry.ino;
  answer.entry_valid = static_cast<uint64_t>(entry.entry_timeout);
  answer.entry_valid_nsec =
      static_cast<uint32_t>((entry.entry_timeout - static_cast<double>(answer.entry_valid)) * 1e9);
  answer.attr_valid = static_cast<uint64_t>(entry.attr_timeout);
  answer.attr_valid_nsec =
      static_cast<uint32_t>((entry.attr_timeout - static_cast<double>(answer.attr_valid)) * 1e9);
  const struct stat& from = entry.attr;
  fuse_attr& to = answer.attr;
  to.ino = from.st_ino;
  to.size = static_cast<uint64_t>(from.st_size);
  to.blocks = static_cast<uint64_t>(from.st_blocks);
  to.atime = static_cast<uint64_t>(from.st_atim.tv_sec);
  to.mtime = static_cast<uint64_t>(from.st_mtim.tv_sec);
  to.ctime = static_cast<uint64_t>(from.st_ctim.tv_sec);
  to.atimensec = static_cast<uint32_t>(from.st_atim.tv_nsec);
  to.mtimensec = static_cast<uint32_t>(from.st_mtim.tv_nsec);
  to.ctimensec = static_cast<uint32_t>(from.st_ctim.tv_nsec);
  to.mode = from.st_mode;
  to.nlink = static_cast<uint32_t>(from.st_nlink);
  to.uid = from.st_uid;
  to.gid = from.st_gid;
  to.rdev = static_cast<uint32_t>(from.st_rdev);
  to.blksize = static_cast<uint32_t>(from.st_blksize);
  return answer;
}

void end_opening(Inode& inode, int fd) {
  close(fd);
  --inode.openings;
}

void do_open(fuse_req_t call, fuse_ino_t number, fuse_file_info* file) {
  Inode& inode = inode_of(call, number);
  Request request(call, Kind::open, inode);
  if (request.injected()) return;
  const int fd = open_when_there_is_room(AT_FDCWD, ProcPath(inode).text,
                                         backing_flags(request.mount(), file->flags));
  if (fd < 0) return request.answer(errno);
  const fuse_open_out answer = open_answer(request.mount(), fd);
  const iovec part = {const_cast<fuse_open_out*>(&answer), sizeof answer};
  ++inode.openings;
  request.wait();
  // ENOENT: the call was interrupted, so there will be no release.
  if (fuse_reply_iov(call, &part, 1) == -ENOENT) end_opening(inode, fd);
}

void do_create(fuse_req_t call, fuse_ino_t number, const char* name, mode_t mode,
               fuse_file_info* file) {
  Inode& parent = inode_of(call, number);
  Mount& mount = mount_of(call);
  Request request(call, Kind::create, nullptr);
  if (request.injected()) return;
  const int flags = backing_flags(mount, file->flags) | (file->flags & O_EXCL);
  struct stat status;
  // Only a file that is new is given away, and who else makes it at the same time must not be
  // robbed of it.
  int fd = open_when_there_is_room(parent.fd, name, flags | O_CREAT | O_EXCL, mode);
  int error = fd < 0 ? errno : give_to_caller(call, parent, name);
  if (error == EEXIST && (file->flags & O_EXCL) == 0) {
    fd = open_when_there_is_room(parent.fd, name, (flags & ~O_EXCL) | O_CREAT, mode);
    error = fd < 0 ? errno : 0;
  }
  Inode* inode = error == 0 ? mount.inodes.find(parent, name, &status) : nullptr;
  if (inode == nullptr) {
    if (error == 0) error = errno;
    if (fd >= 0) close(fd);
    return request.answer(error);
  }
  request.concerns(*inode);
  const fuse_entry_out entry = entry_answer(entry_of(mount.state.options, *inode, status));
  const fuse_open_out opened = open_answer(mount, fd);
  const iovec parts[] = {{const_cast<fuse_entry_out*>(&entry), sizeof entry},
                         {const_cast<fuse_open_out*>(&opened), sizeof opened}};
  ++inode->openings;
  request.wait();
  if (fuse_reply_iov(call, parts, 2) == -ENOENT) {
    end_opening(*inode, fd);
    mount.inodes.forget(*inode, 1);
  }
}

void do_read(fuse_req_t call, fuse_ino_t number, size_t size, off_t offset, fuse_file_info* file) {
  Request request(call, Kind::read, inode_of(call, number));
  count_transfer(request.mount().state.reads, static_cast<uint64_t>(offset), size);
  if (request.injected()) return;
  char* buffer = read_buffer();
  if (buffer == nullptr || size > kBufferBytes)
    return request.answer(buffer == nullptr ? ENOMEM : EINVAL);
  const ssize_t got = pread(descriptor(file), buffer, size, offset);
  if (got < 0) return request.answer(errno);
  request.wait(static_cast<uint64_t>(got), 0);
  fuse_reply_buf(call, buffer, static_cast<size_t>(got));
}

void do_write(fuse_req_t call, fuse_ino_t number, const char* from, size_t size, off_t offset,
              fuse_file_info* file) {
  Request request(call, Kind::write, inode_of(call, number));
  count_transfer(request.mount().state.writes, static_cast<uint64_t>(offset), size);
  if (request.injected()) return;
  const uint64_t fits = take_space(request.mount().state.options, size);
  if (fits == 0 && size != 0) return request.answer(ENOSPC);
  const ssize_t put = pwrite(descriptor(file), from, fits, offset);
  if (put < 0) return request.answer(errno);
  request.wait(0, static_cast<uint64_t>(put));
  fuse_reply_write(call, static_cast<size_t>(put));
}

void do_flush(fuse_req_t call, fuse_ino_t number, fuse_file_info* file) {
  Request request(call, Kind::flush, inode_of(call, number));
  if (request.injected()) return;
  // What the backing file system reports at close, it reports at the close of any descriptor.
  const int copy = dup(descriptor(file));
  request.answer(copy >= 0 && close(copy) == 0 ? 0 : errno);
}

void do_release(fuse_req_t call, fuse_ino_t number, fuse_file_info* file) {
  Inode& inode = inode_of(call, number);
  Request request(call, Kind::release, inode);
  end_opening(inode, descriptor(file));
  request.answer(0);
}

void do_fsync(fuse_req_t call, fuse_ino_t number, int data_only, fuse_file_info* file) {
  Request request(call, Kind::fsync, inode_of(call, number));
  if (request.injected()) return;
  const int result = data_only ? fdatasync(descriptor(file)) : fsync(descriptor(file));
  request.answer(result == 0 ? 0 : errno);
}

void do_fallocate(fuse_req_t call, fuse_ino_t number, int mode, off_t offset, off_t length,
                  fuse_file_info* file) {
  Request request(call, Kind::fallocate, inode_of(call, number));
  if (request.injected()) return;
  request.answer(fallocate(descriptor(file), mode, offset, length) == 0 ? 0 : errno);
}

// Only SEEK_DATA and SEEK_HOLE come here.
void do_lseek(fuse_req_t call, fuse_ino_t number, off_t offset, int whence, fuse_file_info* file) {
  Request request(call, Kind::lseek, inode_of(call, number));
  if (request.injected()) return;
  const off_t at = lseek(descriptor(file), offset, whence);
  if (at < 0) return request.answer(errno);
  request.wait();
  fuse_reply_lseek(call, at);
}

}  // namespace

void set_data_operations(fuse_lowlevel_ops& operations) {
  operations.open = do_open;
  operations.create = do_create;
  operations.read = do_read;
  operations.write = do_write;
  operations.flush = do_flush;
  operations.release = do_release;
  operations.fsync = do_fsync;
  operations.fallocate = do_fallocate;
  operations.lseek = do_lseek;
}

}  // namespace weir::testfs
