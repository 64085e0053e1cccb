// SPDX-License-Identifier: Apache-2.0
#include "output/engine/target.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/engine/inherit.h"
#include "output/format/format.h"
#include "output/format/posix_file.h"

namespace weir::output {

namespace {

// A directory may be made by another owner or group at the same time.
Status make_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string directory = path.substr(0, slash);
    if (mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST && errno != EISDIR) {
      const int error = errno;
      struct stat of;
      if (stat(directory.c_str(), &of) == 0 && S_ISDIR(of.st_mode)) continue;
      return {WEIR_E_FILE, directory + ": the directory cannot be made: " + strerror(error)};
    }
  }
  return {};
}

// A directory is left to the format that makes directories.
Status remove_remains(const std::string& temporary) {
  for (const std::string& path : {temporary, temporary + ".journal"}) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT && errno != EISDIR && errno != EPERM)
      return file_error("remove the old", path, errno);
  }
  return {};
}

}  // namespace

std::string absolute_path(const std::string& directory, const std::string& path) {
  if (directory.empty() || (!path.empty() && path[0] == '/')) return path;
  return (directory == "/" ? "" : directory) + "/" + path;
}

Status check_target(const std::string& path, Existing existing) {
  struct stat of;
  if (lstat(path.c_str(), &of) != 0)
    return {};  // nothing there, or a directory that is notified of when it is made
  const auto no = [&](const std::string& why) {
    return Status(WEIR_E_FILE, path + " is there already: " + why);
  };
  if (S_ISLNK(of.st_mode))
    return no(
        "a symbolic link, which the file would replace; remove it, or write to the path that it "
        "leads to");
  if (S_ISDIR(of.st_mode) && !format_of_file(path))
    return no("a directory that is no Zarr store; remove it, or write to another path");
  if (!S_ISDIR(of.st_mode) && !S_ISREG(of.st_mode))
    return no("no regular file (a device, a pipe or a socket); write to another path");
  if (existing == Existing::kRefuse)
    return no("the stream says existing = \"refuse\"; move it away, or write to another path");
  if ((of.st_mode & 0222) == 0)
    return no("write-protected; allow writing to it, or write to another path");
  return {};
}

Status prepare_target(const std::string& path, const std::string& owner, Existing existing,
                      int generation, FileLock* lock) {
  WEIR_TRY(make_directories(path));
  WEIR_TRY(check_target(path, existing));
  WEIR_TRY(lock->take(temporary_path(path, 0) + ".lock", path, owner));
  return generation >= 0 ? remove_remains(temporary_path(path, generation)) : Status();
}

}  // namespace weir::output
