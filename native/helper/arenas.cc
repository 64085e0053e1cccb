// SPDX-License-Identifier: Apache-2.0
#include "helper/arenas.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace weir::helper {

Held::~Held() {
  for (const int fd : files) {
    if (fd >= 0) close(fd);
  }
  if (arena.header != nullptr) munmap(arena.header, arena.mapped_bytes);
}

node::Identity* Held::participants() const {
  return reinterpret_cast<node::Identity*>(reinterpret_cast<char*>(arena.header) + drain::kPageBytes);
}

int Held::find(node::Identity who) const {
  const uint32_t n = shared() ? drain::kParticipants : 1;
  for (uint32_t i = 0; i < n; ++i) {
    if (participants()[i] == who) return static_cast<int>(i);
  }
  return -1;
}

bool Held::any_dirty() const {
  for (uint32_t i = 0; i < drain::blocks_used(arena.header); ++i) {
    if (arena.blocks[i].taken != 0 && drain::is_dirty(&arena, static_cast<int>(i))) return true;
  }
  return false;
}

uint64_t Held::dirty_bytes() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < drain::blocks_used(arena.header); ++i) {
    if (arena.blocks[i].taken == 0) continue;
    drain::Range range{0, 0};
    while (drain::next_dirty(&arena, static_cast<int>(i), range.hi, &range)) sum += range.hi - range.lo;
  }
  return sum;
}

std::shared_ptr<Held> Arenas::get(const std::string& name) {
  const std::lock_guard<std::mutex> guard(lock_);
  for (const auto& held : arenas_) {
    if (held->name == name && !held->gone) return held;
  }
  if (name.empty() || name.find('/') != std::string::npos) return nullptr;
  const std::string path = folder_ + "/" + name;
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return nullptr;
  struct stat about;
  void* at = MAP_FAILED;
  if (fstat(fd, &about) == 0 && about.st_size >= drain::kPageBytes) {
    at = mmap(nullptr, static_cast<size_t>(about.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (at == MAP_FAILED) return nullptr;
  auto held = std::make_shared<Held>();
  held->name = name;
  if (!drain::attach(&held->arena, at, static_cast<uint64_t>(about.st_size))) return nullptr;
  snprintf(held->arena.name, sizeof held->arena.name, "%s", name.c_str());
  held->files.assign(held->arena.header->files, -1);
  held->givers.assign(held->arena.header->files, node::Identity{});
  arenas_.push_back(held);
  return held;
}

void Arenas::forget(const std::string& name) {
  const std::lock_guard<std::mutex> guard(lock_);
  for (size_t i = 0; i < arenas_.size(); ++i) {
    if (arenas_[i]->name != name) continue;
    arenas_.erase(arenas_.begin() + static_cast<long>(i));
    return;
  }
}

std::vector<std::shared_ptr<Held>> Arenas::all() const {
  const std::lock_guard<std::mutex> guard(lock_);
  return arenas_;
}

std::vector<std::string> Arenas::list() const {
  std::vector<std::string> names;
  for (const auto& held : all()) names.push_back(held->name);  // somebody may have removed the folder
  DIR* folder = opendir(folder_.c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    const bool is_arena = name.rfind("arena.", 0) == 0 || name.rfind("shared.", 0) == 0;
    if (is_arena && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  closedir(folder);
  return names;
}

void Arenas::remove_file(Held& held) {
  held.gone = true;
  unlink((folder_ + "/" + held.name).c_str());
}

}  // namespace weir::helper
