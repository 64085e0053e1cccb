// SPDX-License-Identifier: Apache-2.0
#include "output/writer/mpi_file.h"
#include "output/writer/writers.h"

namespace weir::output::writer {
namespace {

class MpiShared : public MpiFileWriter {
 public:
  MpiShared(MPI_Comm comm, const Options& options, const Roles& roles)
      : MpiFileWriter(comm, options, roles), under_way_(options.files.size()) {}

 private:
  struct Transfer {
    MPI_Request request = MPI_REQUEST_NULL;
    Buffer bytes;
  };

  Status flush(std::vector<Piece> pieces, bool is_last) override {
    Status first;
    if (!pieces.empty()) first = gate_.pass(options_.limit_s);
    for (size_t i = 0; first.ok() && i < pieces.size(); ++i) first = start(std::move(pieces[i]));
    if (!is_last) return first;
    const Status ended = gate_.ended(collectors_, options_.limit_s);
    return first.ok() ? ended : first;
  }

  Status start(Piece piece) {
    const int file = piece.file;
    if (piece.bytes.size() > kLongest)
      return {WEIR_E_FILE, path(file) + ": a record of more than 2 GiB"};
    WEIR_TRY(finish(file));
    Transfer& transfer = under_way_[static_cast<size_t>(file)];
    transfer.bytes = std::move(piece.bytes);
    return of_file(MPI_File_iwrite_shared(opened(file), transfer.bytes.data(),
                                          static_cast<int>(transfer.bytes.size()), MPI_BYTE,
                                          &transfer.request),
                   file, "MPI_File_iwrite_shared");
  }

  Status finish(int file) {
    Transfer& transfer = under_way_[static_cast<size_t>(file)];
    if (transfer.request == MPI_REQUEST_NULL) return {};
    MPI_Status status;
    WEIR_TRY(wait(&transfer.request, "a write through the shared pointer", options_.limit_s,
                  &status));
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    const bool is_whole = static_cast<size_t>(count) == transfer.bytes.size();
    spare_.give(file, std::move(transfer.bytes));
    if (is_whole) return {};
    return {WEIR_E_FILE, path(file) + ": MPI wrote less than it was given; is the disk full?"};
  }

  Status close_files() override {
    Status first = gate_.pass(options_.limit_s);
    for (int file = 0; file < files(); ++file) {
      if (const Status status = finish(file); first.ok()) first = status;
    }
    const Status closed = MpiFileWriter::close_files();
    return first.ok() ? closed : first;
  }

  std::vector<Transfer> under_way_;  // by file
  StepGate gate_;
};

}  // namespace

std::unique_ptr<Writer> make_mpi_shared(MPI_Comm comm, const Options& options,
                                        const Roles& roles) {
  return std::make_unique<MpiShared>(comm, options, roles);
}

}  // namespace weir::output::writer
