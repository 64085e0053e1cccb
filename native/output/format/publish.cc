// SPDX-License-Identifier: Apache-2.0
#include "output/format/publish.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "output/format/format.h"
#include "output/format/posix_file.h"

namespace weir::output {

namespace {

Status rename_error(const std::string& from, const std::string& to, int error) {
  return {WEIR_E_FILE, "cannot rename " + from + " to " + to + ": " + std::strerror(error)};
}

Status publish_beside(const std::string& temporary, const std::string& path) {
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0)
    return {};
  if (errno != EINVAL && errno != ENOSYS) return rename_error(temporary, path, errno);
  // File systems without it: a second name is given to files only, and never to one that is there.
  std::error_code ignored;
  const bool directory = std::filesystem::is_directory(temporary, ignored);
  if (directory ? std::filesystem::exists(path, ignored)
                : ::link(temporary.c_str(), path.c_str()) != 0) {
    return rename_error(temporary, path, directory ? EEXIST : errno);
  }
  if ((directory ? ::rename(temporary.c_str(), path.c_str()) : ::unlink(temporary.c_str())) != 0)
    return file_error("rename", temporary, errno);
  return {};
}

}  // namespace

Status publish_file(const std::string& temporary, const std::string& path, bool replace) {
  if (!replace) return publish_beside(temporary, path);
  if (::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const int error = errno;
  std::error_code ignored;
  // A directory replaces no directory that has something in it, and a file none at all.
  if ((error != ENOTEMPTY && error != EEXIST && error != EISDIR && error != ENOTDIR) ||
      (std::filesystem::is_directory(path, ignored) && !format_of_file(path))) {
    return rename_error(temporary, path, error);
  }
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    std::filesystem::remove_all(temporary, ignored);
    return {};
  }
  // File systems without an exchange: for a moment the name has nothing.
  const std::string old = temporary + ".old";
  std::filesystem::remove_all(old, ignored);
  if (::rename(path.c_str(), old.c_str()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    return rename_error(temporary, path, errno);
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
