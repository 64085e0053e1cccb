// SPDX-License-Identifier: Apache-2.0
#include "output/writer/step_offsets.h"

#include <algorithm>

#include "output/writer/wait.h"

namespace weir::output::writer {

Status StepOffsets::begin(const std::vector<Piece>& pieces, MPI_Comm comm) {
  std::ranges::fill(sizes_, 0);
  int rank = 0;
  WEIR_TRY(from_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank"));
  is_first_ = rank == 0;
  for (const Piece& piece : pieces)
    sizes_[static_cast<size_t>(piece.file)] = static_cast<int64_t>(piece.size());
  const int files = static_cast<int>(ends_.size());
  WEIR_TRY(from_mpi(MPI_Iexscan(sizes_.data(), before_.data(), files, MPI_INT64_T, MPI_SUM, comm,
                                &requests_[0]),
                    "MPI_Iexscan"));
  return from_mpi(MPI_Iallreduce(sizes_.data(), sums_.data(), files, MPI_INT64_T, MPI_SUM, comm,
                                 &requests_[1]),
                  "MPI_Iallreduce");
}

Result<bool> StepOffsets::test() {
  // A request that is complete stays so: MPI_Request_get_status leaves it to `place`.
  for (MPI_Request request : requests_) {
    int done = 0;
    WEIR_TRY(from_mpi(MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE),
                      "MPI_Request_get_status"));
    if (!done) return false;
  }
  return true;
}

Status StepOffsets::place(std::vector<Piece>& pieces, double limit_s) {
  for (MPI_Request& request : requests_)
    WEIR_TRY(wait(&request, "the sizes of another collector", limit_s));
  // What MPI_Exscan leaves on the first rank is undefined.
  if (is_first_) std::ranges::fill(before_, 0);
  for (size_t file = 0; file < ends_.size(); ++file) {
    before_[file] += ends_[file];
    ends_[file] += sums_[file];
  }
  for (Piece& piece : pieces) piece.offset = begin_of(piece.file);
  return {};
}

}  // namespace weir::output::writer
