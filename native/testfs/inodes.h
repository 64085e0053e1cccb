// SPDX-License-Identifier: Apache-2.0
// The files which the kernel knows of: one Inode for each file of the backing directory, however
// many names it has, held by a descriptor opened with O_PATH for as long as the kernel remembers
// it. So a file that is renamed or removed while it is open stays the same file. When these are
// more than half of the descriptors that the process may have, the kernel is asked to forget those
// that nobody has open and that were looked up longest ago.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "testfs/state.h"

namespace weir::testfs {

struct Inode {
  int fd = -1;
  dev_t device = 0;
  ino_t number = 0;
  uint64_t lookups = 0;  // under the table's lock
  std::string path;      // the name it was last looked up by, from the root of the mount; under the
                         // table's lock
  std::atomic<FileEntry*> entry = nullptr;  // the counters of that name
  bool is_directory = false;
  uint64_t parent = 0;  // the kernel's number of the directory with that name
  std::atomic<uint32_t> openings = 0;
  std::list<Inode*>::iterator place;  // among all by their last lookup
};

// A name that the kernel may forget.
struct IdleName {
  uint64_t parent;
  std::string name;
};

class Inodes {
 public:
  explicit Inodes(State& state) : state_(state) {}

  // The root of the mount; false and errno when the directory cannot be opened.
  [[nodiscard]] bool open_root(const char* directory);
  Inode& root() { return root_; }

  // The file of this name, counted once more as known to the kernel; nullptr and errno when there
  // is none. Follows no link.
  [[nodiscard]] Inode* find(Inode& parent, const char* name, struct stat* status);
  void forget(Inode& inode, uint64_t lookups);
  // Waits until more than `most` files are known, and more than at the last time; names of an
  // eighth of them that nobody has open.
  [[nodiscard]] std::vector<IdleName> wait_for_idle(size_t most);
  // A file got this name by a rename; from now on its requests count for it.
  void renamed(Inode& parent, const char* name);

 private:
  struct Key {
    dev_t device;
    ino_t number;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return key.number * 0x9e3779b97f4a7c15ull ^ key.device;
    }
  };

  void name(Inode& inode, const Inode& parent, const char* name);
  // Where three quarters of the descriptors are in use: waits so that a name is forgotten for each
  // that is new.
  void give_way(std::unique_lock<std::mutex>& guard);

  State& state_;
  std::mutex lock_;
  std::unordered_map<Key, Inode*, Hash> known_;
  std::list<Inode*> by_lookup_;  // the last one at the end; the root is not among them
  std::condition_variable grown_, asked_;
  size_t most_ = SIZE_MAX, seen_ = 0;
  bool asking_ = false;  // the kernel is being asked to forget names
  Inode root_;
};

// As openat. Where all descriptors are in use, idle files are being forgotten: it waits for that, a
// second.
[[nodiscard]] int open_when_there_is_room(int directory, const char* name, int flags,
                                          mode_t mode = 0);

// "/proc/self/fd/N": the way to calls that take no O_PATH descriptor.
struct ProcPath {
  explicit ProcPath(const Inode& inode);
  char text[32];
};

}  // namespace weir::testfs
