// SPDX-License-Identifier: Apache-2.0
#include "output/writer/phase.h"
#include "output/writer/placed.h"
#include "output/writer/writers.h"

namespace weir::output::writer {
namespace {

// The end of file f lies in the window of collector f modulo their number. All counters are open to
// all collectors from open to close (one shared lock): what is atomic is the addition.
class OffsetSharing : public PlacedWriter {
 public:
  using PlacedWriter::PlacedWriter;

 private:
  Status open_files() override {
    WEIR_TRY(PlacedWriter::open_files());
    const auto bytes = static_cast<MPI_Aint>(options_.files.size() * sizeof(int64_t));
    int64_t* ends = nullptr;
    WEIR_TRY(from_mpi(MPI_Win_allocate(bytes, sizeof(int64_t), MPI_INFO_NULL, collectors_, &ends,
                                       &window_),
                      "MPI_Win_allocate"));
    for (int file = 0; file < files(); ++file) ends[file] = 0;
    MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
    WEIR_TRY(from_mpi(MPI_Win_lock_all(0, window_), "MPI_Win_lock_all"));
    WEIR_TRY(from_mpi(MPI_Win_sync(window_), "MPI_Win_sync"));
    return from_mpi(MPI_Barrier(collectors_), "MPI_Barrier");
  }

  Status place(std::vector<Piece>& pieces) override {
    WEIR_TRY(gate_.pass(options_.limit_s));
    Phase phase("rma");
    const int many = static_cast<int>(roles_.collectors.size());
    std::vector<int64_t> sizes;  // operands, until the additions are complete
    sizes.reserve(pieces.size());
    for (Piece& piece : pieces) {
      sizes.push_back(static_cast<int64_t>(piece.bytes.size()));
      WEIR_TRY(from_mpi(MPI_Fetch_and_op(&sizes.back(), &piece.offset, MPI_INT64_T,
                                         piece.file % many, piece.file, MPI_SUM, window_),
                        "MPI_Fetch_and_op"));
    }
    return from_mpi(MPI_Win_flush_all(window_), "MPI_Win_flush_all");
  }

  Status placed_step() override { return gate_.ended(collectors_, options_.limit_s); }

  Status close_files() override {
    Status status = gate_.pass(options_.limit_s);
    if (status.ok() && window_ != MPI_WIN_NULL) {
      MPI_Win_unlock_all(window_);
      MPI_Win_free(&window_);
    }
    const Status closed = PlacedWriter::close_files();
    return status.ok() ? closed : status;
  }

  MPI_Win window_ = MPI_WIN_NULL;
  StepGate gate_;
};

}  // namespace

std::unique_ptr<Writer> make_offset_sharing(MPI_Comm comm, const Options& options,
                                            const Roles& roles) {
  return std::make_unique<OffsetSharing>(comm, options, roles);
}

}  // namespace weir::output::writer
