// SPDX-License-Identifier: Apache-2.0
#include "output/format/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "output/format/intact.h"
#include "output/format/room.h"

namespace weir::output {

Status file_error(const char* what, const std::string& path, int error) {
  return {WEIR_E_FILE, std::string("cannot ") + what + " " + path + ": " + std::strerror(error) +
                           room_advice(error, path)};
}

PosixFile::PosixFile(PosixFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      end_(other.end_),
      expects_whole_(other.expects_whole_) {}

PosixFile& PosixFile::operator=(PosixFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(end_, other.end_);
  std::swap(expects_whole_, other.expects_whole_);
  return *this;
}

PosixFile::~PosixFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<PosixFile> PosixFile::open(const std::string& path, int flags) {
  PosixFile file;
  do {
    file.fd_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (file.fd_ < 0 && errno == EINTR);
  if (file.fd_ < 0) return file_error(flags & O_CREAT ? "create" : "open", path, errno);
  file.path_ = path;
  return file;
}

// Linux transfers at most 2 GiB - 4 KiB a call.
constexpr size_t kMostBytes = size_t{1} << 30;

Status PosixFile::write_at(const void* data, size_t bytes, int64_t offset) {
  if (std::exchange(expects_whole_, false)) WEIR_TRY(expect_length(*this, end_));
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::pwrite(fd_, from, std::min(bytes, kMostBytes), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_error(("write " + bytes_at(bytes, offset)).c_str(), path_, errno);
    from += n;
    offset += n;
    bytes -= static_cast<size_t>(n);
  }
  end_ = std::max(end_, offset);
  return {};
}

Status PosixFile::read_at(void* data, size_t bytes, int64_t offset) const {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::pread(fd_, to, std::min(bytes, kMostBytes), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_error("read", path_, errno);
    if (n == 0) {
      return {WEIR_E_FORMAT, "cannot read " + path_ + ": it ends at byte " +
                                 std::to_string(offset) + ", " + std::to_string(bytes) +
                                 " bytes before its data do"};
    }
    to += n;
    offset += n;
    bytes -= static_cast<size_t>(n);
  }
  return {};
}

Result<int64_t> PosixFile::size() const {
  struct stat status;
  if (::fstat(fd_, &status) != 0) return file_error("look at", path_, errno);
  return static_cast<int64_t>(status.st_size);
}

Status PosixFile::resize(int64_t bytes) {
  if (::ftruncate(fd_, bytes) != 0) return file_error("change the length of", path_, errno);
  end_ = bytes;
  return {};
}

Status PosixFile::sync() const {
  if (::fdatasync(fd_) != 0) return file_error("sync", path_, errno);
  return {};
}

Status PosixFile::close() {
  if (fd_ < 0) return {};
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR)
    return file_error("close", path_, errno);
  return {};
}

}  // namespace weir::output
