// SPDX-License-Identifier: Apache-2.0
#include "output/engine/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "output/format/posix_file.h"

namespace weir::output {

namespace {

// The file that is locked is still the one of that name: who held it before may have removed it
// just now.
bool has_name(int fd, const std::string& path) {
  struct stat mine, named;
  return fstat(fd, &mine) == 0 && lstat(path.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
         mine.st_dev == named.st_dev;
}

std::string first_bytes(int fd) {
  char text[200];
  const ssize_t n = pread(fd, text, sizeof text, 0);
  return n > 0 ? std::string(text, static_cast<size_t>(n)) : std::string();
}

// "<owner>\nprocess 12 on node7\n"
std::string words(const std::string& owner) {
  char host[100] = "";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = 0;
  return owner + "\nprocess " + std::to_string(getpid()) + " on " + host + "\n";
}

std::string second_line(const std::string& text) {
  const size_t begin = text.find('\n') + 1,
               end = begin == 0 ? std::string::npos : text.find('\n', begin);
  return end == std::string::npos ? "another process" : text.substr(begin, end - begin);
}

}  // namespace

FileLock::FileLock(FileLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

FileLock::~FileLock() { release(); }

Status FileLock::take(const std::string& path, const std::string& target,
                      const std::string& owner) {
  // Each but the last has met a process that was just giving its lock up.
  constexpr int kAttempts = 100;
  release();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) return file_error("create", path, errno);
    const bool refused = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!refused && has_name(fd, path)) {
      fd_ = fd;
      path_ = path;
      const std::string text = words(owner);
      // What is in it is for messages alone; a disk that is full will be notified of by the file
      // itself.
      if (ftruncate(fd, 0) != 0 || pwrite(fd, text.data(), text.size(), 0) < 0) return {};
      return {};
    }
    const std::string holder = first_bytes(fd);
    close(fd);
    if (!refused) continue;
    if (holder.rfind(owner + "\n", 0) != 0) {
      return {WEIR_E_FILE, target + ": another process writes this file (" + second_line(holder) +
                               " holds " + path +
                               "); write to another path, or wait until it has ended"};
    }
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return file_error("remove", path, errno);
  }
  return {WEIR_E_FILE, "cannot lock " + path + ": it is removed again and again"};
}

std::string FileLock::holder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return "";
  const bool held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  const std::string text = held ? second_line(first_bytes(fd)) : "";
  close(fd);
  return text;
}

void FileLock::release() {
  if (fd_ < 0) return;
  if (has_name(fd_, path_)) unlink(path_.c_str());
  close(std::exchange(fd_, -1));
}

}  // namespace weir::output
