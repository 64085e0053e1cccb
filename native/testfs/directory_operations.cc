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

struct Directory {
  DIR* stream;
  std::mutex lock;
  off_t at = 0;               // where the stream stands
  dirent* pending = nullptr;  // read, but the last answer had no room for it
};

Directory* directory_of(const fuse_file_info* file) {
  return reinterpret_cast<Directory*>(file->fh);
}

void do_opendir(fuse_req_t call, fuse_ino_t number, fuse_file_info* file) {
  Inode& inode = inode_of(call, number);
  Request request(call, Kind::opendir, inode);
  if (request.injected()) return;
  const int fd = open_when_there_is_room(inode.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = fd >= 0 ? fdopendir(fd) : nullptr;
  if (stream == nullptr) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return request.answer(error);
  }
  file->fh = reinterpret_cast<uint64_t>(new Directory{.stream = stream, .lock = {}});
  request.wait();
  if (fuse_reply_open(call, file) == -ENOENT) {
    closedir(stream);
    delete directory_of(file);
  }
}

// Fills the answer; 0 or an errno.
int fill(fuse_req_t call, Directory& directory, off_t offset, std::vector<char>& answer,
         size_t* used) {
  if (offset != directory.at) {
    seekdir(directory.stream, offset);
    directory.pending = nullptr;
    directory.at = offset;
  }
  for (;;) {
    if (directory.pending == nullptr) {
      errno = 0;
      directory.pending = readdir(directory.stream);
      if (directory.pending == nullptr) return *used != 0 ? 0 : errno;
    }
    struct stat status = {};
    status.st_ino = directory.pending->d_ino;
    status.st_mode = static_cast<mode_t>(directory.pending->d_type) << 12;
    const size_t room = answer.size() - *used;
    const size_t size =
        fuse_add_direntry(call, answer.data() + *used, room, directory.pending->d_name, &status,
                          directory.pending->d_off);
    if (size > room) return 0;
    *used += size;
    directory.at = directory.pending->d_off;
    directory.pending = nullptr;
  }
}

void do_readdir(fuse_req_t call, fuse_ino_t number, size_t size, off_t offset,
                fuse_file_info* file) {
  Request request(call, Kind::readdir, inode_of(call, number));
  if (request.injected()) return;
  Directory& directory = *directory_of(file);
  std::vector<char> answer(size);
  size_t used = 0;
  int error;
  {
    std::lock_guard guard(directory.lock);
    error = fill(call, directory, offset, answer, &used);
  }
  if (error != 0) return request.answer(error);
  request.wait();
  fuse_reply_buf(call, answer.data(), used);
}

void do_releasedir(fuse_req_t call, fuse_ino_t number, fuse_file_info* file) {
  Request request(call, Kind::releasedir, inode_of(call, number));
  closedir(directory_of(file)->stream);
  delete directory_of(file);
  request.answer(0);
}

void do_fsyncdir(fuse_req_t call, fuse_ino_t number, int data_only, fuse_file_info* file) {
  Request request(call, Kind::fsyncdir, inode_of(call, number));
  if (request.injected()) return;
  const int fd = dirfd(directory_of(file)->stream);
  request.answer((data_only ? fdatasync(fd) : fsync(fd)) == 0 ? 0 : errno);
}

}  // namespace

void set_directory_operations(fuse_lowlevel_ops& operations) {
  operations.opendir = do_opendir;
  operations.readdir = do_readdir;
  operations.releasedir = do_releasedir;
  operations.fsyncdir = do_fsyncdir;
}

}  // namespace weir::testfs
