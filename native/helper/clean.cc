// SPDX-License-Identifier: Apache-2.0
#include "helper/clean.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <vector>

namespace weir::helper {
namespace {

constexpr char kOurs[] = "/dev/shm/weir.";
constexpr int kTries = 40;
constexpr unsigned kPauseUs = 25'000;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* all = opendir(folder.c_str());
  if (all == nullptr) return names;
  while (const dirent* entry = readdir(all)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(all);
  return names;
}

// Made anew by whoever needs it. Arenas, caches and reports are not.
bool is_furniture(const std::string& name) { return name == "lock" || name == "pulse" || name == "drain" || name.rfind("registry.", 0) == 0; }

// Processes whose maps their own user may not read (init of a container, programs that guard secrets) are taken for strangers: what
// one of them had accepted would lie in an arena, and that keeps the folder.
bool is_mapped(const std::string& folder) {
  for (const std::string& name : names_in("/proc")) {
    const long pid = strtol(name.c_str(), nullptr, 10);
    struct stat about;
    const std::string process = "/proc/" + name;
    if (pid <= 0 || pid == getpid() || stat(process.c_str(), &about) != 0 || about.st_uid != geteuid()) continue;
    std::ifstream maps(process + "/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(folder) != std::string::npos) return true;
    }
  }
  return false;
}

// The job's folder goes with its last node's, and with it the store between nodes of one host: copies of what files had, made anew by
// whoever needs it.
void remove_job(const std::string& folder) {
  const std::vector<std::string> names = names_in(folder);
  for (const std::string& name : names) {
    if (name.rfind("between-", 0) != 0) return;
  }
  // The helper of a node that went a moment before may not have ended yet, and has seen ours.
  for (int tries = 0; is_mapped(folder + "/"); ++tries) {
    if (tries == kTries) return;
    usleep(kPauseUs);
  }
  for (const std::string& name : names) unlink((folder + "/" + name).c_str());
  rmdir(folder.c_str());
}

}  // namespace

bool remove_unused(const std::string& folder) {
  if (folder.rfind(kOurs, 0) != 0) return false;
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  bool unused = flock(fd, LOCK_EX | LOCK_NB) == 0;
  const std::vector<std::string> names = unused ? names_in(folder) : std::vector<std::string>{};
  for (const std::string& name : names) unused = unused && is_furniture(name);
  unused = unused && !is_mapped(folder + "/");
  if (unused) {
    for (const std::string& name : names) unlink((folder + "/" + name).c_str());
    rmdir(folder.c_str());
    remove_job(folder.substr(0, folder.rfind('/')));
  }
  close(fd);
  return unused;
}

}  // namespace weir::helper
