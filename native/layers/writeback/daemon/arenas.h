// SPDX-License-Identifier: Apache-2.0
// The arenas that the daemon has mapped, and the descriptors it holds for their files. One lock:
// the main thread takes over and lets go, the threads of Recovery look up.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "layers/writeback/daemon/errors.h"
#include "layers/writeback/format.h"

namespace weir::daemon {

struct Held {
  std::string name;
  writeback::Arena arena{};
  std::vector<int> files;   // descriptor by slot, -1: none
  std::vector<node::Identity> givers;  // whose open file each of them is a copy of
  std::mutex lock;          // of the two
  std::atomic<int> ending{0};  // copies that another one has replaced and that are not closed yet
  bool gone = false;        // its file has been removed

  ~Held();
  // Their locks end as well.
  void close_files();
  bool shared() const { return arena.header->shared != 0; }
  node::Identity* participants() const;
  // The participant's number, or -1.
  int find(node::Identity who) const;
  uint32_t most_participants() const { return shared() ? writeback::kParticipants : 1; }
  // Of the `weir run` that started the participant; 0: none did.
  uint64_t run_of(node::Identity who) const;
  // Of the one that started all who ever took part; 0: several, or none.
  uint64_t only_run() const;
  bool has_living() const;
  bool any_dirty() const;
  // Dirty bytes of a shared arena in which no process takes part any more: nobody has their files,
  // and nobody writes them, whoever waits.
  bool is_orphaned() const;
  uint64_t dirty_bytes() const;
  // Of files that processes use which have ended, whoever else uses them.
  uint64_t dirty_bytes_of_dead() const;
  std::map<std::string, uint64_t> dirty_by_file() const;  // bytes by path

 private:
  template <typename Visit>
  void each_dirty(Visit visit) const;  // visit(block, bytes)
};

// Reports orphaned bytes, once for each arena.
void note_orphaned(const Held& held, Errors& errors);

class Arenas {
 public:
  // Of the directory that node::use_directory() named. What is done there is done by a descriptor
  // of it that was checked once: a directory that is put under its name later is another one.
  explicit Arenas(std::string directory);
  ~Arenas();
  Arenas(const Arenas&) = delete;
  Arenas& operator=(const Arenas&) = delete;
  // -1: it is not the user's alone, or has no secret.
  int directory_descriptor() const { return descriptor_; }

  // The arena of that name, mapped now if it was not; null when it is none, or refused() with a
  // reason.
  std::shared_ptr<Held> get(const std::string& name);
  // Why the file is not trusted; empty: it is, or it is no arena.
  std::string refused(const std::string& name) const;
  void forget(const std::string& name);
  std::vector<std::shared_ptr<Held>> all() const;
  // Names of all arenas: those that are mapped, and those whose files are in the directory.
  std::vector<std::string> list() const;
  void remove_file(Held& held);
  const std::string& directory() const { return directory_; }

 private:
  writeback::Header* map(const std::string& name, uint64_t* bytes, std::string* refusal) const;

  std::string directory_;
  int descriptor_;
  node::Secret secret_{};
  mutable std::mutex lock_;
  std::vector<std::shared_ptr<Held>> arenas_;
};

}  // namespace weir::daemon
