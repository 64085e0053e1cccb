// SPDX-License-Identifier: Apache-2.0
#include "output/writer/sink/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

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

Status Descriptors::pwrite_all(int file, const char* bytes, size_t count, int64_t offset) const {
  while (count > 0) {
    const ssize_t wrote = ::pwrite((*this)[file], bytes, count, offset);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return failed(file, wrote < 0 ? errno : ENOSPC);
    bytes += wrote, offset += wrote, count -= static_cast<size_t>(wrote);
  }
  return {};
}

Status Descriptors::failed(int file, int error) const {
  return {WEIR_E_FILE,
          files_[static_cast<size_t>(file)].path + " cannot be written: " + std::strerror(error)};
}

}  // namespace weir::output::writer
