// SPDX-License-Identifier: Apache-2.0
// What to do where a file system takes no more bytes, for the end of a message. Of the library and
// of the modules of formats.
#pragma once

#include <sys/statvfs.h>

#include <cerrno>
#include <string>

namespace weir::output {

// "", or "; " and words. path: of a file, which need not be there, in a directory that is.
inline std::string room_advice(int error, const std::string& path) {
  if (error == EFBIG)
    return "; files of this size are not allowed there: use rotation, or raise the limit";
  if (error == EDQUOT)
    return "; the quota there is used up: remove files, raise it, or write to another file system";
  if (error != ENOSPC) return "";
  const size_t name = path.rfind('/');
  const std::string directory = name == std::string::npos ? "." : path.substr(0, name + 1);
  struct statvfs there;
  std::string room;
  if (::statvfs(directory.c_str(), &there) == 0) {
    room = " (" + std::to_string(there.f_bavail * there.f_frsize) + " of " +
           std::to_string(there.f_blocks * there.f_frsize) + " bytes are free";
    if (there.f_files > 0 && there.f_favail == 0) room += ", and no file can be added";
    room += ")";
  }
  return "; free space on that file system" + room + ", or write to another one";
}

// "12 bytes at byte 34 of".
inline std::string bytes_at(size_t bytes, int64_t offset) {
  return std::to_string(bytes) + " bytes at byte " + std::to_string(offset) + " of";
}

}  // namespace weir::output
