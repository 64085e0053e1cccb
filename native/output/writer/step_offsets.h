// SPDX-License-Identifier: Apache-2.0
// Offsets of a whole step at once: each collector's part of a file begins where those of the
// collectors before it end. A scan and a sum of one number for each file, which do not block.
#pragma once

#include <mpi.h>

#include <vector>

#include "output/core/status.h"
#include "output/writer/buffer.h"

namespace weir::output::writer {

class StepOffsets {
 public:
  explicit StepOffsets(int files)
      : ends_(static_cast<size_t>(files)), sizes_(ends_), before_(ends_), sums_(ends_) {}
  StepOffsets(const StepOffsets&) = delete;
  StepOffsets& operator=(const StepOffsets&) = delete;

  // [collective] Of at most one piece of each file.
  Status begin(const std::vector<Piece>& pieces, MPI_Comm comm);
  bool is_under_way() const { return requests_[1] != MPI_REQUEST_NULL; }
  // Whether all have come; it stays under way until `place`.
  Result<bool> test();
  // The end of it: each piece has its offset.
  Status place(std::vector<Piece>& pieces, double limit_s);
  // Where this collector's part of the file begins, whether it has one or not; after `place`.
  int64_t begin_of(int file) const { return before_[static_cast<size_t>(file)]; }

 private:
  std::vector<int64_t> ends_;  // of the files, before the step
  std::vector<int64_t> sizes_, before_, sums_;
  bool is_first_ = false;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

}  // namespace weir::output::writer
