// SPDX-License-Identifier: Apache-2.0
#include "output/writer/sink/descriptors.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weir::output::writer {

Status Descriptors::open(int file, const std::string& path) {
  File& one = files_[static_cast<size_t>(file)];
  one.path = path;
  one.fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (one.fd >= 0) return {};
  return {WEIR_E_FILE, path + " cannot be opened for writing: " + std::strerror(errno)};
}

Status Descriptors::close() {
  Status first;
  for (size_t i = 0; i < files_.size(); ++i) {
    if (files_[i].fd < 0) continue;
    if (::close(files_[i].fd) != 0 && first.ok()) first = failed(static_cast<int>(i), errno);
    files_[i].fd = -1;
  }
  return first;
}

std::vector<iovec> parts_of(const Piece& piece, size_t from) {
  std::vector<iovec> parts;
  const auto add = [&](std::span<const char> part) {
    const size_t skipped = std::min(from, part.size());
    from -= skipped;
    if (part.size() > skipped)
      parts.push_back({const_cast<char*>(part.data()) + skipped, part.size() - skipped});
  };
  add(piece.bytes);
  for (const auto& part : piece.lent) add(part);
  return parts;
}

Status Descriptors::write_rest(const Piece& piece, size_t written) const {
  const std::vector<iovec> parts = parts_of(piece, written);
  int64_t offset = piece.offset + static_cast<int64_t>(written);
  size_t first = 0, done = 0;  // parts that are written, and bytes of the next one
  while (first < parts.size()) {
    ssize_t wrote = 0;
    if (done > 0 || first + 1 == parts.size()) {
      wrote = ::pwrite((*this)[piece.file], static_cast<char*>(parts[first].iov_base) + done,
                       parts[first].iov_len - done, offset);
    } else {
      const size_t count = std::min<size_t>(parts.size() - first, IOV_MAX);
      wrote = ::pwritev((*this)[piece.file], &parts[first], static_cast<int>(count), offset);
    }
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return failed(piece.file, wrote < 0 ? errno : ENOSPC);
    offset += wrote;
    for (done += static_cast<size_t>(wrote); first < parts.size() && done >= parts[first].iov_len;)
      done -= parts[first++].iov_len;
  }
  return {};
}

Status Descriptors::failed(int file, int error) const {
  return {WEIR_E_FILE,
          files_[static_cast<size_t>(file)].path + " cannot be written: " + std::strerror(error)};
}

}  // namespace weir::output::writer
