// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testfs/operations.h"

namespace weir::testfs {
namespace {

// Answers with the file of this name, which is counted under its own name from now on.
void reply_entry(Request& request, fuse_req_t call, Inode& parent, const char* name) {
  Mount& mount = request.mount();
  struct stat status;
  Inode* inode = mount.inodes.find(parent, name, &status);
  if (inode == nullptr) return request.answer(errno);
  request.concerns(*inode);
  const fuse_entry_param entry = entry_of(mount.state.options, *inode, status);
  request.wait();
  if (fuse_reply_entry(call, &entry) == -ENOENT) mount.inodes.forget(*inode, 1);
}

void do_lookup(fuse_req_t call, fuse_ino_t number, const char* name) {
  Request request(call, Kind::lookup, nullptr);
  if (request.injected()) return;
  reply_entry(request, call, inode_of(call, number), name);
}

void do_forget(fuse_req_t call, fuse_ino_t number, uint64_t lookups) {
  mount_of(call).inodes.forget(inode_of(call, number), lookups);
  fuse_reply_none(call);
}

void do_forget_multi(fuse_req_t call, size_t count, fuse_forget_data* forgets) {
  for (size_t i = 0; i < count; ++i)
    mount_of(call).inodes.forget(inode_of(call, forgets[i].ino), forgets[i].nlookup);
  fuse_reply_none(call);
}

void reply_made(Request& request, fuse_req_t call, Inode& parent, const char* name, int made) {
  const int error = made == 0 ? give_to_caller(call, parent, name) : errno;
  if (error != 0) return request.answer(error);
  reply_entry(request, call, parent, name);
}

void do_mknod(fuse_req_t call, fuse_ino_t number, const char* name, mode_t mode, dev_t device) {
  Request request(call, Kind::mknod, nullptr);
  if (request.injected()) return;
  Inode& parent = inode_of(call, number);
  reply_made(request, call, parent, name, mknodat(parent.fd, name, mode, device));
}

void do_mkdir(fuse_req_t call, fuse_ino_t number, const char* name, mode_t mode) {
  Request request(call, Kind::mkdir, nullptr);
  if (request.injected()) return;
  Inode& parent = inode_of(call, number);
  reply_made(request, call, parent, name, mkdirat(parent.fd, name, mode));
}

void do_symlink(fuse_req_t call, const char* target, fuse_ino_t number, const char* name) {
  Request request(call, Kind::symlink, nullptr);
  if (request.injected()) return;
  Inode& parent = inode_of(call, number);
  reply_made(request, call, parent, name, symlinkat(target, parent.fd, name));
}

void do_link(fuse_req_t call, fuse_ino_t number, fuse_ino_t parent_number, const char* name) {
  Request request(call, Kind::link, nullptr);
  if (request.injected()) return;
  Inode& parent = inode_of(call, parent_number);
  const ProcPath from(inode_of(call, number));
  if (linkat(AT_FDCWD, from.text, parent.fd, name, AT_SYMLINK_FOLLOW) != 0)
    return request.answer(errno);
  reply_entry(request, call, parent, name);
}

void do_unlink(fuse_req_t call, fuse_ino_t number, const char* name) {
  Request request(call, Kind::unlink, nullptr);
  if (request.injected()) return;
  request.answer(unlinkat(inode_of(call, number).fd, name, 0) == 0 ? 0 : errno);
}

void do_rmdir(fuse_req_t call, fuse_ino_t number, const char* name) {
  Request request(call, Kind::rmdir, nullptr);
  if (request.injected()) return;
  request.answer(unlinkat(inode_of(call, number).fd, name, AT_REMOVEDIR) == 0 ? 0 : errno);
}

void do_rename(fuse_req_t call, fuse_ino_t from_number, const char* from, fuse_ino_t to_number,
               const char* to, unsigned flags) {
  Request request(call, Kind::rename, nullptr);
  if (request.injected()) return;
  Inode& from_parent = inode_of(call, from_number);
  Inode& to_parent = inode_of(call, to_number);
  if (renameat2(from_parent.fd, from, to_parent.fd, to, flags) != 0) return request.answer(errno);
  request.mount().inodes.renamed(to_parent, to);
  if (flags & RENAME_EXCHANGE) request.mount().inodes.renamed(from_parent, from);
  request.answer(0);
}

}  // namespace

int give_to_caller(fuse_req_t request, const Inode& parent, const char* made) {
  const fuse_ctx* caller = fuse_req_ctx(request);
  if (geteuid() != 0 || (caller->uid == 0 && caller->gid == 0)) return 0;
  struct stat directory, status;
  if (fstatat(parent.fd, "", &directory, AT_EMPTY_PATH) != 0) return errno;
  if (fstatat(parent.fd, made, &status, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  const gid_t group = directory.st_mode & S_ISGID ? static_cast<gid_t>(-1) : caller->gid;
  if (fchownat(parent.fd, made, caller->uid, group, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  // A change of owner takes these bits from what may be executed.
  const mode_t special = status.st_mode & (S_ISUID | S_ISGID);
  if (special != 0 && !S_ISLNK(status.st_mode) &&
      fchmodat(parent.fd, made, status.st_mode & 07777, 0) != 0)
    return errno;
  return 0;
}

void set_name_operations(fuse_lowlevel_ops& operations) {
  operations.lookup = do_lookup;
  operations.forget = do_forget;
  operations.forget_multi = do_forget_multi;
  operations.mknod = do_mknod;
  operations.mkdir = do_mkdir;
  operations.symlink = do_symlink;
  operations.link = do_link;
  operations.unlink = do_unlink;
  operations.rmdir = do_rmdir;
  operations.rename = do_rename;
}

}  // namespace weir::testfs
