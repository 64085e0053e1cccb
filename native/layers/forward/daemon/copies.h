// SPDX-License-Identifier: Apache-2.0
// Descriptors of the ranks' files, as they came: for each entry of the cache's table one for
// reading and one for writing, which may be the same. Threads: any; who uses a copy keeps it open.
#pragma once

#include <stdint.h>

#include <memory>
#include <mutex>
#include <vector>

#include "layers/cache/forwarding.h"

namespace weir::forward {

// A descriptor of this process, closed with its last user.
class Copy {
 public:
  Copy(int descriptor, node::Identity giver) : descriptor_(descriptor), giver_(giver) {}
  ~Copy();
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  int descriptor() const { return descriptor_; }
  // One whose flags suit requests at an offset: a program may have set O_APPEND or O_DIRECT on the
  // open file that this one is a copy of. -1: there is none.
  int for_writing();
  node::Identity giver() const { return giver_; }

 private:
  const int descriptor_;
  int own_ = -1;  // the same file, opened anew
  const node::Identity giver_;
};

struct Pair {
  std::shared_ptr<Copy> reading, writing;
};

class Copies {
 public:
  Copies(cache::Cache& cache, uint32_t number);

  // Whatever an earlier forwarder had is closed.
  void begin();
  // What a rank has sent for that entry: kept where it is the entry's file and serves for something
  // that no other does; the rank is answered.
  void take(uint32_t file, int descriptor, node::Identity giver);
  // Of a row of opens: kept as long as a process has its file open.
  void take_open(uint32_t row, int descriptor, node::Identity giver);
  // Sends a copy of it to the socket; where there is none the socket ends.
  void lend(uint32_t row, int socket);
  // Of the entry's file as it is now; both null: none.
  Pair of(uint32_t file);
  // Closes what there is of the file, unless some process has it open by now.
  void close_unused(uint32_t file);
  // What processes that have ended had open; their locks end.
  void end_of(node::Identity dead);
  void end_of_dead();

 private:
  bool fits(uint32_t file, int descriptor, uint32_t* modes) const;
  bool is_mine(uint32_t file) const;
  bool is_used(uint32_t file) const;
  void forget_dead_users(cache::FileService& f);
  void drop(uint32_t file);
  void drop_opens(uint32_t file);

  cache::Cache& cache_;
  const uint32_t number_;
  std::mutex lock_;
  std::vector<Pair> pairs_;
  std::vector<std::shared_ptr<Copy>> opens_;  // by row
};

}  // namespace weir::forward
