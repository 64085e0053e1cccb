// SPDX-License-Identifier: Apache-2.0
#include "layers/writeback/daemon/clean.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "layers/machinery/node/private.h"
#include "layers/machinery/node/registry.h"

namespace weir::daemon {
namespace {

constexpr int kTries = 40;
constexpr unsigned kPauseUs = 25'000;

// Of an open directory; the descriptor is used up.
std::vector<std::string> names_in(int directory) {
  std::vector<std::string> names;
  DIR* all = directory < 0 ? nullptr : fdopendir(directory);
  if (all == nullptr) return names;
  while (const dirent* entry = readdir(all)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(all);
  return names;
}

// Made anew by whoever needs it. Arenas, caches and reports are not.
bool is_furniture(const std::string& name) {
  for (const char* one : {"lock", "pulse", "drain", "key"}) {
    if (name == one) return true;
  }
  for (const char* one : {"registry.", "key.", "forward-"}) {
    if (name.rfind(one, 0) == 0) return true;
  }
  return false;
}

// Processes whose maps their own user may not read (init of a container, programs that guard
// secrets) are taken for strangers: what one of them had accepted would lie in an arena, and that
// keeps the directory.
bool is_mapped(const std::string& directory) {
  for (const std::string& name : names_in(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC))) {
    const long pid = strtol(name.c_str(), nullptr, 10);
    struct stat about;
    const std::string process = "/proc/" + name;
    if (pid <= 0 || pid == getpid() || stat(process.c_str(), &about) != 0 ||
        about.st_uid != geteuid())
      continue;
    std::ifstream maps(process + "/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(directory) != std::string::npos) return true;
    }
  }
  return false;
}

void remove_all(int directory, const std::vector<std::string>& names, const std::string& path) {
  for (const std::string& name : names) unlinkat(directory, name.c_str(), 0);
  rmdir(path.c_str());
}

// The job's directory goes with its last node's, and with it the store between nodes of one host:
// copies of what files had, made anew by whoever needs it.
void remove_job(const std::string& directory) {
  const int fd = static_cast<int>(node::open_job());
  if (fd < 0) return;
  const std::vector<std::string> names = names_in(dup(fd));
  bool unused = true;
  for (const std::string& name : names) unused = unused && name.rfind("between-", 0) == 0;
  // The daemon of a node that went a moment before may not have ended yet, and has seen ours.
  for (int tries = 0; unused && is_mapped(directory + "/"); ++tries) {
    unused = tries < kTries;
    usleep(kPauseUs);
  }
  if (unused) remove_all(fd, names, directory);
  close(fd);
}

}  // namespace

bool remove_unused(const std::string& directory) {
  if (directory.rfind(node::kOurs, 0) != 0) return false;
  const int fd = static_cast<int>(node::open_own_directory());
  if (fd < 0) return false;
  bool unused = flock(fd, LOCK_EX | LOCK_NB) == 0;
  const std::vector<std::string> names = unused ? names_in(dup(fd)) : std::vector<std::string>{};
  for (const std::string& name : names) unused = unused && is_furniture(name);
  unused = unused && !node::may_be_used_elsewhere() && !is_mapped(directory + "/");
  if (unused) {
    remove_all(fd, names, directory);
    remove_job(directory.substr(0, directory.rfind('/')));
  }
  close(fd);
  return unused;
}

}  // namespace weir::daemon
