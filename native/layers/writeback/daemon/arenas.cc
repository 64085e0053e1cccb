// SPDX-License-Identifier: Apache-2.0
#include "layers/writeback/daemon/arenas.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/atomic.h"
#include "layers/machinery/node/private.h"

namespace weir::daemon {

void Held::close_files() {
  const std::lock_guard<std::mutex> guard(lock);
  for (int& fd : files) {
    if (fd >= 0) close(std::exchange(fd, -1));
  }
}

Held::~Held() {
  close_files();
  if (arena.header != nullptr) munmap(arena.header, arena.mapped_bytes);
}

node::Identity* Held::participants() const {
  return writeback::participants_of(arena.header);
}

int Held::find(node::Identity who) const {
  for (uint32_t i = 0; i < most_participants(); ++i) {
    if (participants()[i] == who) return static_cast<int>(i);
  }
  return -1;
}

uint64_t Held::run_of(node::Identity who) const {
  const int participant = find(who);
  return participant < 0 ? 0 : base::load(&writeback::runs_of(arena.header)[participant]);
}

uint64_t Held::only_run() const {
  uint64_t only = 0;
  for (uint32_t i = 0; i < most_participants(); ++i) {
    const uint64_t run = base::load(&writeback::runs_of(arena.header)[i]);
    if (run != 0 && only != 0 && run != only) return 0;
    if (run != 0) only = run;
  }
  return only;
}

bool Held::has_living() const {
  for (uint32_t i = 0; i < most_participants(); ++i) {
    if (participants()[i].pid != 0 && node::alive(participants()[i])) return true;
  }
  return false;
}

bool Held::is_orphaned() const {
  if (!shared()) return false;
  for (uint32_t i = 0; i < most_participants(); ++i) {
    if (participants()[i].pid != 0) return false;
  }
  return any_dirty();
}

void note_orphaned(const Held& held, Errors& errors) {
  if (!held.is_orphaned() || base::exchange(&held.arena.header->orphaned, 1u) != 0) return;
  for (const auto& [path, bytes] : held.dirty_by_file())
    errors.add(path, EOWNERDEAD, bytes, 0, held.only_run());
}

bool Held::any_dirty() const {
  for (uint32_t i = 0; i < writeback::blocks_used(arena.header); ++i) {
    if (arena.blocks[i].taken != 0 && writeback::is_dirty(&arena, static_cast<int>(i))) return true;
  }
  return false;
}

template <typename Visit>
void Held::each_dirty(Visit visit) const {
  for (int i = 0; i < static_cast<int>(writeback::blocks_used(arena.header)); ++i) {
    if (arena.blocks[i].taken == 0) continue;
    writeback::Range range{0, 0};
    while (writeback::next_dirty(&arena, i, range.hi, &range)) visit(i, range.hi - range.lo);
  }
}

uint64_t Held::dirty_bytes() const {
  uint64_t sum = 0;
  each_dirty([&](int, uint32_t bytes) { sum += bytes; });
  return sum;
}

uint64_t Held::dirty_bytes_of_dead() const {
  if (!has_living()) return dirty_bytes();
  uint64_t dead[writeback::kParticipants / 64] = {};
  bool anybody = false;
  for (uint32_t i = 0; i < most_participants(); ++i) {
    if (participants()[i].pid == 0 || node::alive(participants()[i])) continue;
    dead[i / 64] |= uint64_t{1} << (i % 64);
    anybody = true;
  }
  uint64_t sum = 0;
  if (!anybody) return sum;
  each_dirty([&](int block, uint32_t bytes) {
    const int slot = writeback::slot_of(&arena, block);
    bool is_used = false;
    for (uint32_t i = 0; slot >= 0 && i < writeback::kParticipants / 64; ++i)
      is_used = is_used || (base::load(&arena.slots[slot].users[i]) & dead[i]) != 0;
    if (is_used) sum += bytes;
  });
  return sum;
}

std::map<std::string, uint64_t> Held::dirty_by_file() const {
  std::map<std::string, uint64_t> sums;
  each_dirty([&](int block, uint32_t bytes) {
    if (const int slot = writeback::slot_of(&arena, block); slot >= 0)
      sums[arena.slots[slot].path] += bytes;
  });
  return sums;
}

Arenas::Arenas(std::string directory)
    : directory_(std::move(directory)), descriptor_(static_cast<int>(node::open_own_directory())) {
  if (descriptor_ < 0) {
    descriptor_ = -1;
  } else if (!node::read_secret(&secret_)) {
    close(descriptor_);
    descriptor_ = -1;
  }
}

Arenas::~Arenas() {
  if (descriptor_ >= 0) close(descriptor_);
}

// Null when it is no arena, or not the user's alone, or not the job's.
writeback::Header* Arenas::map(const std::string& name, uint64_t* bytes,
                               std::string* refusal) const {
  const int fd = name.find('/') != std::string::npos
                     ? -1
                     : openat(descriptor_, name.c_str(),
                              O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    *refusal = errno == ENOENT ? "" : strerror(errno);
    return nullptr;
  }
  struct stat about;
  void* at = MAP_FAILED;
  if (!node::is_private_file(fd))
    *refusal = "is not a regular file of this user alone with one name";
  else if (fstat(fd, &about) == 0 && about.st_size >= writeback::kPageBytes) {
    *bytes = static_cast<uint64_t>(about.st_size);
    at = mmap(nullptr, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (at == MAP_FAILED) return nullptr;
  auto* header = static_cast<writeback::Header*>(at);
  if (base::load(&header->magic) != writeback::kMagic || header->version != writeback::kVersion ||
      header->secret == secret_)
    return header;
  *refusal = "carries another secret than the job's";
  munmap(at, *bytes);
  return nullptr;
}

std::string Arenas::refused(const std::string& name) const {
  uint64_t bytes = 0;
  std::string refusal;
  writeback::Header* header = map(name, &bytes, &refusal);
  if (header != nullptr) munmap(header, bytes);
  return refusal;
}

std::shared_ptr<Held> Arenas::get(const std::string& name) {
  const std::lock_guard<std::mutex> guard(lock_);
  for (const auto& held : arenas_) {
    if (held->name == name && !held->gone) return held;
  }
  uint64_t bytes = 0;
  std::string refusal;
  writeback::Header* header = map(name, &bytes, &refusal);
  if (header == nullptr) return nullptr;
  auto held = std::make_shared<Held>();
  held->name = name;
  if (!writeback::attach(&held->arena, header, bytes)) return nullptr;
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
  for (const auto& held : all())
    names.push_back(held->name);  // somebody may have removed the directory
  const int fd =
      descriptor_ < 0 ? -1 : openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* directory = fd < 0 ? nullptr : fdopendir(fd);
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    const bool is_arena = name.rfind("arena.", 0) == 0 || name.rfind("shared.", 0) == 0;
    if (is_arena && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  closedir(directory);
  return names;
}

void Arenas::remove_file(Held& held) {
  held.gone = true;
  unlinkat(descriptor_, held.name.c_str(), 0);
}

}  // namespace weir::daemon
