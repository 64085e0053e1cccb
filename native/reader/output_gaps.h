// SPDX-License-Identifier: Apache-2.0
// What of the time between a rank's calls on a file belongs to its output: gathers of what is
// written next, and the packing of it. Only what has evidence counts:
//   - data that the rank received directly before it wrote about as much of it, and the computing
//     between;
//   - computing between two calls of a library on one file, of which nothing else comes between:
//     as much as packing the next variable may take. A variable that is put once more begins
//     another phase of output, and what lies before it is the program's own computing.
#pragma once

#include <unordered_set>
#include <vector>

#include "reader/output_calls.h"
#include "reader/output_sums.h"

namespace weir::reader {

class Gaps {
 public:
  // waited, arriving: as of weir_reader_output.
  struct Rank {
    Labels& labels;
    Growing& waited;
    Growing arriving;
  };
  Gaps(Rank rank, double ns_per_tick) : rank_(rank), ticks_per_ns_(1 / ns_per_tick) {}

  // A call that counts. Calls come by falling end.
  void output(const Call& call, Label& label, FileState& file);
  // A call of MPI outside of calls on files.
  void mpi(const Call& call);
  // Anything else that the rank did, from then on: what lies before it is not output.
  void stop(int64_t begin) {
    begin_ = std::min(begin_, begin);
    file_ = nullptr, received_.clear();
  }

 private:
  // From one variable to the next, packing takes at most so long for each byte put: 250 MB/s.
  static constexpr double kPackingNsPerByte = 4;
  // From a gather to the write, for each byte that is received or written: 50 MB/s, a compression.
  static constexpr double kGatheredNsPerByte = 20;
  static constexpr double kBetweenNs = 1e5;   // calls of a library, whatever they are about
  static constexpr double kDefiningNs = 5e7;  // from create to enddef of netCDF: definitions
  static constexpr uint64_t kLeastBytes = 64 << 10;  // of a gather that is written without library
  static constexpr uint64_t kMostBytes = uint64_t{1} << 40;
  static constexpr uint64_t kMostTimes = 16;         // as much received as written, at most
  static constexpr uint64_t kLeastPart = 8;          // at least the 8th part of it

  struct Stay {
    int64_t begin, end, next;  // a call of MPI, and where begins what follows it
  };

  int64_t room(uint64_t bytes, double ns_per_byte) const {
    const double ns = (level_ == Call::kLibrary ? kBetweenNs : 0) +
                      ns_per_byte * double(std::min(bytes, kMostBytes));
    return int64_t(ns * ticks_per_ns_);
  }
  bool is_new_phase(const Call& call, Label& label, FileState& file) const;
  bool fits(const Call& call);
  void accept();

  void add_packing(int64_t begin, int64_t end);

  Rank rank_;
  const double ticks_per_ns_;
  // The calls that follow without anything between, from begin_ on; the first of them.
  FileState* file_ = nullptr;
  Label* label_ = nullptr;
  Call::Kind kind_ = Call::kNothing;
  Call::Level level_ = Call::kSystem;
  // In ticks. begin_: before it the rank did nothing that was met; packed_: between gathers and
  // the write.
  int64_t begin_ = INT64_MAX, packed_ = 0;
  uint64_t first_bytes_ = 0, bytes_ = 0, collected_ = 0;
  bool has_gather_ = false;
  std::vector<Stay> stays_;  // of which it is not known whether they brought what was written
  std::unordered_set<uint32_t> senders_;
  std::vector<std::pair<uint32_t, uint64_t>> received_;  // in the wait that comes next
};

}  // namespace weir::reader
