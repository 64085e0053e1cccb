// SPDX-License-Identifier: Apache-2.0
#include "output/transport/process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string>

namespace weir::output {

namespace {

// What is in a small file of /proc or /sys; empty when it cannot be read.
std::string text_of(const std::string& path) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char part[4096];
  for (ssize_t got; (got = read(fd, part, sizeof part)) > 0 && text.size() < (1 << 16);)
    text.append(part, static_cast<size_t>(got));
  close(fd);
  return text;
}

// The number behind `key` at the begin of a line; -1: none.
int64_t number_after(const std::string& text, const std::string& key) {
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    if (at == 0 || text[at - 1] == '\n')
      return strtoll(text.c_str() + at + key.size(), nullptr, 10);
  }
  return -1;
}

// Left in one control group (version 2). Pages of files give way: they do not count.
int64_t left_in_group(const std::string& directory) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  const std::string limit = text_of(directory + "/memory.max");
  if (limit.empty() || limit[0] == 'm') return kAll;
  const std::string used = text_of(directory + "/memory.current"),
                    stat = text_of(directory + "/memory.stat");
  const int64_t files = std::max<int64_t>(number_after(stat, "inactive_file "), 0) +
                        std::max<int64_t>(number_after(stat, "active_file "), 0);
  return std::max<int64_t>(
      strtoll(limit.c_str(), nullptr, 10) - strtoll(used.c_str(), nullptr, 10) + files, 0);
}

}  // namespace

int64_t available_bytes() {
  int64_t left = std::numeric_limits<int64_t>::max();
  if (const int64_t node_kib = number_after(text_of("/proc/meminfo"), "MemAvailable:");
      node_kib >= 0)
    left = node_kib * 1024;
  const std::string groups = text_of("/proc/self/cgroup");
  const size_t own = groups.rfind("0::", 0) == 0 ? 0 : groups.find("\n0::");
  if (own == std::string::npos) return left;
  const size_t begin = groups.find('/', own);
  if (begin == std::string::npos) return left;
  std::string path = groups.substr(begin, groups.find('\n', begin) - begin);
  while (!path.empty()) {
    left = std::min(left, left_in_group("/sys/fs/cgroup" + (path == "/" ? "" : path)));
    path.resize(path.rfind('/'));
  }
  return left;
}

}  // namespace weir::output
