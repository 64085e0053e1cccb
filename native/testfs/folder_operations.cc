// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <mutex>
#include <vector>

#include "testfs/operations.h"

namespace weir::testfs {
namespace {

struct Folder {
  DIR* stream;
  std::mutex lock;
  off_t at = 0;               // where the stream stands
  dirent* pending = nullptr;  // read, but the last answer had no room for it
};

Folder* folder_of(const fuse_file_info* file) { return reinterpret_cast<Folder*>(file->fh); }

void do_opendir(fuse_req_t call, fuse_ino_t number, fuse_file_info* file) {
  Inode& inode = inode_of(call, number);
  Request request(call, Kind::opendir, inode);
  if (request.injected()) return;
  const int fd = openat(inode.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = fd >= 0 ? fdopendir(fd) : nullptr;
  if (stream == nullptr) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return request.answer(error);
  }
  file->fh = reinterpret_cast<uint64_t>(new Folder{.stream = stream, .lock = {}});
  request.wait();
  if (fuse_reply_open(call, file) == -ENOENT) {
    closedir(stream);
    delete folder_of(file);
  }
}

// Fills the answer; 0 or an errno.
int fill(fuse_req_t call, Folder& folder, off_t offset, std::vector<char>& answer, size_t* used) {
  if (offset != folder.at) {
    seekdir(folder.stream, offset);
    folder.pending = nullptr;
    folder.at = offset;
  }
  for (;;) {
    if (folder.pending == nullptr) {
      errno = 0;
      folder.pending = readdir(folder.stream);
      if (folder.pending == nullptr) return *used != 0 ? 0 : errno;
    }
    struct stat status = {};
    status.st_ino = folder.pending->d_ino;
    status.st_mode = static_cast<mode_t>(folder.pending->d_type) << 12;
    const size_t room = answer.size() - *used;
    const size_t size =
        fuse_add_direntry(call, answer.data() + *used, room, folder.pending->d_name, &status, folder.pending->d_off);
    if (size > room) return 0;
    *used += size;
    folder.at = folder.pending->d_off;
    folder.pending = nullptr;
  }
}

void do_readdir(fuse_req_t call, fuse_ino_t number, size_t size, off_t offset, fuse_file_info* file) {
  Request request(call, Kind::readdir, inode_of(call, number));
  if (request.injected()) return;
  Folder& folder = *folder_of(file);
  std::vector<char> answer(size);
  size_t used = 0;
  int error;
  {
    std::lock_guard guard(folder.lock);
    error = fill(call, folder, offset, answer, &used);
  }
  if (error != 0) return request.answer(error);
  request.wait();
  fuse_reply_buf(call, answer.data(), used);
}

void do_releasedir(fuse_req_t call, fuse_ino_t number, fuse_file_info* file) {
  Request request(call, Kind::releasedir, inode_of(call, number));
  closedir(folder_of(file)->stream);
  delete folder_of(file);
  request.answer(0);
}

void do_fsyncdir(fuse_req_t call, fuse_ino_t number, int data_only, fuse_file_info* file) {
  Request request(call, Kind::fsyncdir, inode_of(call, number));
  if (request.injected()) return;
  const int fd = dirfd(folder_of(file)->stream);
  request.answer((data_only ? fdatasync(fd) : fsync(fd)) == 0 ? 0 : errno);
}

}  // namespace

void set_folder_operations(fuse_lowlevel_ops& operations) {
  operations.opendir = do_opendir;
  operations.readdir = do_readdir;
  operations.releasedir = do_releasedir;
  operations.fsyncdir = do_fsyncdir;
}

}  // namespace weir::testfs
