// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <vector>

#include "testfs/operations.h"

namespace weir::testfs {
namespace {

int descriptor(const fuse_file_info* file) { return static_cast<int>(file->fh); }

int status_of(const Inode& inode, struct stat* status) {
  return fstatat(inode.fd, "", status, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

void do_getattr(fuse_req_t call, fuse_ino_t number, fuse_file_info*) {
  Inode& inode = inode_of(call, number);
  Request request(call, Kind::getattr, inode);
  if (request.injected()) return;
  struct stat status;
  if (const int error = status_of(inode, &status)) return request.answer(error);
  request.wait();
  fuse_reply_attr(call, &status, seconds(request.mount().state.options.attr_timeout_ns));
}

timespec time_for(int what, int set_bit, int now_bit, const timespec& given) {
  if (what & now_bit) return {0, UTIME_NOW};
  return what & set_bit ? given : timespec{0, UTIME_OMIT};
}

int change_size(const Inode& inode, off_t size, const fuse_file_info* file) {
  const int result =
      file != nullptr ? ftruncate(descriptor(file), size) : truncate(ProcPath(inode).text, size);
  return result == 0 ? 0 : errno;
}

int change(const Inode& inode, const struct stat& to, int what, const fuse_file_info* file) {
  if (what & FUSE_SET_ATTR_MODE) {
    const int result = file != nullptr ? fchmod(descriptor(file), to.st_mode)
                                       : chmod(ProcPath(inode).text, to.st_mode);
    if (result != 0) return errno;
  }
  if (what & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
    const uid_t user = what & FUSE_SET_ATTR_UID ? to.st_uid : static_cast<uid_t>(-1);
    const gid_t group = what & FUSE_SET_ATTR_GID ? to.st_gid : static_cast<gid_t>(-1);
    if (fchownat(inode.fd, "", user, group, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) return errno;
  }
  if (what & FUSE_SET_ATTR_SIZE) {
    if (const int error = change_size(inode, to.st_size, file)) return error;
  }
  if (what & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
              FUSE_SET_ATTR_MTIME_NOW)) {
    const timespec times[2] = {
        time_for(what, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, to.st_atim),
        time_for(what, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, to.st_mtim)};
    // By descriptor where it can be: /proc/self/fd/N of a link is the link itself only with
    // AT_EMPTY_PATH.
    const int result = file != nullptr ? futimens(descriptor(file), times)
                                       : utimensat(inode.fd, "", times, AT_EMPTY_PATH);
    if (result != 0) return errno;
  }
  return 0;
}

void do_setattr(fuse_req_t call, fuse_ino_t number, struct stat* to, int what,
                fuse_file_info* file) {
  Inode& inode = inode_of(call, number);
  Request request(call, what & FUSE_SET_ATTR_SIZE ? Kind::truncate : Kind::setattr, inode);
  if (request.injected()) return;
  int error = change(inode, *to, what, file);
  struct stat status;
  if (error == 0) error = status_of(inode, &status);
  if (error != 0) return request.answer(error);
  request.wait();
  fuse_reply_attr(call, &status, seconds(request.mount().state.options.attr_timeout_ns));
}

void do_readlink(fuse_req_t call, fuse_ino_t number) {
  Inode& inode = inode_of(call, number);
  Request request(call, Kind::readlink, inode);
  if (request.injected()) return;
  char target[PATH_MAX + 1];
  const ssize_t length = readlinkat(inode.fd, "", target, sizeof target - 1);
  if (length < 0) return request.answer(errno);
  target[length] = '\0';
  request.wait();
  fuse_reply_readlink(call, target);
}

void do_statfs(fuse_req_t call, fuse_ino_t number) {
  Inode& inode = inode_of(call, number);
  Request request(call, Kind::statfs, inode);
  if (request.injected()) return;
  struct statvfs status;
  if (fstatvfs(inode.fd, &status) != 0) return request.answer(errno);
  request.wait();
  fuse_reply_statfs(call, &status);
}

void do_setxattr(fuse_req_t call, fuse_ino_t number, const char* name, const char* value,
                 size_t size, int flags) {
  Inode& inode = inode_of(call, number);
  Request request(call, Kind::setxattr, inode);
  if (request.injected()) return;
  request.answer(setxattr(ProcPath(inode).text, name, value, size, flags) == 0 ? 0 : errno);
}

// The answer to getxattr and listxattr, which both ask with a size of 0 how much there would be.
template <typename Get>
void reply_attribute(Request& request, fuse_req_t call, size_t size, Get get) {
  if (request.injected()) return;
  std::vector<char> value(size);
  const ssize_t length = get(value.data());
  if (length < 0) return request.answer(errno);
  request.wait();
  if (size == 0) fuse_reply_xattr(call, static_cast<size_t>(length));
  else fuse_reply_buf(call, value.data(), static_cast<size_t>(length));
}

void do_getxattr(fuse_req_t call, fuse_ino_t number, const char* name, size_t size) {
  Inode& inode = inode_of(call, number);
  Request request(call, Kind::getxattr, inode);
  reply_attribute(request, call, size,
                  [&](char* value) { return getxattr(ProcPath(inode).text, name, value, size); });
}

void do_listxattr(fuse_req_t call, fuse_ino_t number, size_t size) {
  Inode& inode = inode_of(call, number);
  Request request(call, Kind::listxattr, inode);
  reply_attribute(request, call, size,
                  [&](char* value) { return listxattr(ProcPath(inode).text, value, size); });
}

void do_removexattr(fuse_req_t call, fuse_ino_t number, const char* name) {
  Inode& inode = inode_of(call, number);
  Request request(call, Kind::removexattr, inode);
  if (request.injected()) return;
  request.answer(removexattr(ProcPath(inode).text, name) == 0 ? 0 : errno);
}

}  // namespace

double seconds(const Word& timeout_ns) {
  return static_cast<double>(timeout_ns.load(std::memory_order_relaxed)) / 1e9;
}

fuse_entry_param entry_of(const Options& options, const Inode& inode, const struct stat& status) {
  fuse_entry_param entry = {};
  entry.ino = reinterpret_cast<fuse_ino_t>(&inode);
  entry.attr = status;
  entry.attr_timeout = seconds(options.attr_timeout_ns);
  entry.entry_timeout = seconds(options.entry_timeout_ns);
  return entry;
}

void set_attribute_operations(fuse_lowlevel_ops& operations) {
  operations.getattr = do_getattr;
  operations.setattr = do_setattr;
  operations.readlink = do_readlink;
  operations.statfs = do_statfs;
  operations.setxattr = do_setxattr;
  operations.getxattr = do_getxattr;
  operations.listxattr = do_listxattr;
  operations.removexattr = do_removexattr;
}

}  // namespace weir::testfs
