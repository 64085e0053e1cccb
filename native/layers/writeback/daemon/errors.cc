// SPDX-License-Identifier: Apache-2.0
#include "layers/writeback/daemon/errors.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/machinery/node/private.h"

namespace weir::daemon {
namespace {

// Others may be able to write to the run's directory: no link and no pipe of theirs is written to.
int open_in_run(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
  struct stat about;
  if (fd < 0 || (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink == 1))
    return fd;
  close(fd);
  return -1;
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    char escaped[8];
    if (byte >= 0x80) snprintf(escaped, sizeof escaped, "\\udc%02x", byte);
    else if (byte < 0x20 || byte == '"' || byte == '\\')
      snprintf(escaped, sizeof escaped, "\\u%04x", byte);
    else snprintf(escaped, sizeof escaped, "%c", c);
    out += escaped;
  }
  return out + "\"";
}

Errors::Errors(const std::string& directory, const std::string& run)
    : files_{directory.empty() ? "" : "errors", run.empty() ? "" : run + "/drain-errors.jsonl"} {}

void Errors::add(const std::string& path, int error, uint64_t lost_bytes, uint32_t pid,
                 uint64_t run) {
  const char* name = strerrorname_np(error);
  const std::string line = "{\"path\": " + quoted(path) + ", \"errno\": " + std::to_string(error) +
                           ", \"error\": \"" + (name != nullptr ? name : "?") +
                           "\", \"lost_bytes\": " + std::to_string(lost_bytes) +
                           ", \"pid\": " + std::to_string(pid) +
                           ", \"run\": " + std::to_string(run) + "}\n";
  const std::lock_guard<std::mutex> guard(lock_);
  for (const std::string& file : files_) {
    if (file.empty()) continue;
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    const int fd = &file == &files_[0] ? static_cast<int>(node::open_inside(file.c_str(), flags))
                                       : open_in_run(file, flags);
    if (fd < 0) continue;
    [[maybe_unused]] const ssize_t written = write(fd, line.data(), line.size());
    close(fd);
  }
}

}  // namespace weir::daemon
