// SPDX-License-Identifier: Apache-2.0
#include "output/format/netcdf/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::output::netcdf {
namespace {

constexpr uint64_t kMagic = 0x316e726a72696577;  // "weirjrn1"
constexpr size_t kHeadBytes = 24, kExtentHead = 16;

int write_all(int fd, const char* data, size_t bytes, uint64_t offset) {
  while (bytes > 0) {
    const ssize_t n = ::pwrite(fd, data, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    data += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return 0;
}

uint64_t checksum(const char* data, size_t bytes) {
  uint64_t value = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes; i++)
    value = (value ^ static_cast<unsigned char>(data[i])) * 0x100000001b3;
  return value;
}

void append(std::vector<char>& out, uint64_t number) {
  const char* bytes = reinterpret_cast<const char*>(&number);
  out.insert(out.end(), bytes, bytes + sizeof number);
}

uint64_t number_at(const std::vector<char>& bytes, size_t at) {
  uint64_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

std::vector<char> read_all(int fd) {
  struct stat status;
  std::vector<char> bytes;
  if (::fstat(fd, &status) == 0) bytes.resize(static_cast<size_t>(status.st_size));
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n =
        ::pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    have += static_cast<size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

// Nothing when the journal is not valid.
Extents parse(const std::vector<char>& bytes) {
  Extents extents;
  if (bytes.size() < kHeadBytes || number_at(bytes, 0) != kMagic) return {};
  const uint64_t n = number_at(bytes, 8);
  if (n > bytes.size() - kHeadBytes ||
      checksum(bytes.data() + kHeadBytes, n) != number_at(bytes, 16))
    return {};
  for (size_t at = kHeadBytes, end = kHeadBytes + n; at < end;) {
    if (end - at < kExtentHead || number_at(bytes, at + 8) > end - at - kExtentHead) return {};
    const char* from = bytes.data() + at + kExtentHead;
    const size_t length = number_at(bytes, at + 8);
    extents[number_at(bytes, at)].assign(from, from + length);
    at += kExtentHead + length;
  }
  return extents;
}

}  // namespace

int write_extents(int fd, const Extents& extents) {
  for (auto it = extents.rbegin(); it != extents.rend(); ++it) {
    if (int error = write_all(fd, it->second.data(), it->second.size(), it->first); error != 0)
      return error;
  }
  return 0;
}

Journal& Journal::operator=(Journal&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(valid_, other.valid_);
  return *this;
}

Journal::~Journal() {
  if (fd_ >= 0) ::close(fd_);
}

// The head, which makes it valid, after the rest.
int Journal::write(const Extents& extents, bool sync) {
  if (fd_ < 0) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) return errno;
    (void)::flock(
        fd_,
        LOCK_EX | LOCK_NB);  // says that the writer lives; where locks do not work nobody hears it
  }
  std::vector<char> body, head;
  for (const auto& [address, bytes] : extents) {
    append(body, address);
    append(body, bytes.size());
    body.insert(body.end(), bytes.begin(), bytes.end());
  }
  append(head, kMagic);
  append(head, body.size());
  append(head, checksum(body.data(), body.size()));
  if (int error = write_all(fd_, body.data(), body.size(), kHeadBytes); error != 0) return error;
  valid_ = true;
  if (int error = write_all(fd_, head.data(), head.size(), 0); error != 0) return error;
  return sync && ::fdatasync(fd_) != 0 ? errno : 0;
}

int Journal::clear() {
  const uint64_t nothing = 0;
  valid_ = false;
  return write_all(fd_, reinterpret_cast<const char*>(&nothing), sizeof nothing, 0);
}

void Journal::remove() {
  if (fd_ >= 0 && !valid_) ::unlink(path_.c_str());
}

int Journal::replay() {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0) return errno == ENOENT ? 0 : errno;
  const Extents extents = parse(read_all(fd_));
  int error = 0;
  if (!extents.empty()) {
    const int file = ::open(file_.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return errno;
    error = write_extents(file, extents);
    if (error == 0 && ::fdatasync(file) != 0) error = errno;
    ::close(file);
  }
  if (error == 0) remove();
  return error;
}

}  // namespace weir::output::netcdf
