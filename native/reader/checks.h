// SPDX-License-Identifier: Apache-2.0
// Whether the records of a chunk are whole and possible. Each chunk is checked once, by the first
// pass that reads it; to all passes a damaged record is a place that was never written, so that no
// sum has it.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "reader/mapping.h"
#include "reader/problems.h"

namespace weir::reader {

struct Index;
struct Names;

// What records of a process may bear. Ids of names: of files, and of what is no file.
struct Possible {
  uint64_t first_ticks = 0, reach_ticks = ~uint64_t{0};
  std::array<uint32_t, 2> most_ids = {~uint32_t{0}, ~uint32_t{0}};

  bool is_time(uint64_t ticks) const { return ticks - first_ticks < reach_ticks; }
  bool is_id(uint32_t id) const { return (id & ~uint32_t{0} >> 1) <= most_ids[id >> 31]; }
};

class Checks {
 public:
  // before: chunks, processes and names are known.
  void begin(const Mapping& file, const Index& index, const Names& names, bool is_damaged);

  // Threads: any, but for one chunk one at a time.
  // cost: some 30 instructions a record, at the first call for a chunk.
  void check(const Mapping& file, weir_reader_chunk& chunk) const;

  // The same for who reads the chunk piece by piece, and each piece behind its check while the
  // processor has it at hand. is_sound() of each piece in their order; the first false: check().
  class Pieces {
   public:
    Pieces(const Checks& checks, weir_reader_chunk& chunk)
        : possible_(checks.possible_[chunk.process]), chunk_(chunk), has_sums_(checks.has_sums_) {}
    bool is_sound(const char* at, uint64_t records);
    // All were sound.
    void end() { std::atomic_ref(chunk_.is_checked).store(1, std::memory_order_release); }

   private:
    template <bool has_sums>
    bool all_sound(const char* at, uint64_t records);

    const Possible& possible_;
    weir_reader_chunk& chunk_;
    const bool has_sums_;
    bool has_hole_ = false;
  };
  static bool is_checked(weir_reader_chunk& chunk) {
    return std::atomic_ref(chunk.is_checked).load(std::memory_order_acquire) != 0;
  }
  // All chunks that have not been checked.
  void check_all(const Mapping& file, Index& index, unsigned threads) const;

  const Possible& of(uint32_t process) const { return possible_[process]; }

  // What was found since the last call, in no order.
  std::vector<weir_reader_problem> take_found() const;

 private:
  class Chunk;

  std::vector<Possible> possible_;
  bool has_sums_ = false;
  mutable std::mutex mutex_;
  mutable std::vector<weir_reader_problem> found_;
};

// Most bytes that one call moves: no machine has more memory to read them into.
inline constexpr uint64_t kMostMoved = uint64_t{1} << 40;

}  // namespace weir::reader
