// SPDX-License-Identifier: Apache-2.0
#include "output/format/publish.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <filesystem>

#include "output/format/posix_file.h"

namespace weir::output {

Status publish_file(const std::string& temporary, const std::string& path) {
  if (::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const int error = errno;
  std::error_code ignored;
  // A folder replaces no folder that has something in it, and a file none at all.
  if ((error != ENOTEMPTY && error != EEXIST && error != EISDIR && error != ENOTDIR) ||
      (std::filesystem::is_directory(path, ignored) && !std::filesystem::exists(path + "/zarr.json", ignored))) {
    return file_error("give its final name to", path, error);
  }
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    std::filesystem::remove_all(temporary, ignored);
    return {};
  }
  // File systems without an exchange: for an instant the name has nothing.
  const std::string old = temporary + ".old";
  std::filesystem::remove_all(old, ignored);
  if (::rename(path.c_str(), old.c_str()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    return file_error("give its final name to", path, errno);
  }
  std::filesystem::remove_all(old, ignored);
  return {};
}

Status discard_file(const std::string& temporary) {
  std::error_code error;
  std::filesystem::remove_all(temporary, error);
  return error ? file_error("remove", temporary, error.value()) : Status();
}

}  // namespace weir::output
