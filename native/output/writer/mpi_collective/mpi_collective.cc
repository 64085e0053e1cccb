// SPDX-License-Identifier: Apache-2.0
#include "output/writer/mpi_file.h"
#include "output/writer/step_offsets.h"
#include "output/writer/writers.h"

namespace weir::output::writer {
namespace {

// One collective write of each file and step, split: it ends when the next step has been encoded.
// A collector without records of a file takes part with none: numbers of records may be unequal.
class MpiCollective : public MpiFileWriter {
 public:
  MpiCollective(MPI_Comm comm, const Options& options, const Roles& roles)
      : MpiFileWriter(comm, options, roles), offsets_(files()), under_way_(options.files.size()) {}

 private:
  bool flushes_full_buffers() const override { return false; }

  Status flush(std::vector<Piece> pieces, bool) override {
    Status first = finish();
    for (Piece& piece : pieces) {
      if (piece.bytes.size() <= kLongest) continue;
      first = {WEIR_E_FILE, path(piece.file) + ": more than 2 GiB of one collector in a step; use "
                                               "more collectors, or the writer direct"};
      piece.bytes.clear();
    }
    WEIR_TRY(offsets_.begin(pieces, collectors_));
    WEIR_TRY(offsets_.place(pieces, options_.limit_s));
    for (Piece& piece : pieces)
      under_way_[static_cast<size_t>(piece.file)] = std::move(piece.bytes);
    for (int file = 0; file < files(); ++file) {
      if (const Status status = begin_write(file); first.ok()) first = status;
    }
    is_under_way_ = true;
    return first;
  }

  Status begin_write(int file) {
    const Buffer& bytes = under_way_[static_cast<size_t>(file)];
    WEIR_TRY(of_file(MPI_File_seek(opened(file), offsets_.begin_of(file), MPI_SEEK_SET), file,
                     "MPI_File_seek"));
    return of_file(MPI_File_write_all_begin(opened(file), bytes.data(),
                                            static_cast<int>(bytes.size()), MPI_BYTE),
                   file, "MPI_File_write_all_begin");
  }

  Status finish() {
    Status first;
    for (int file = 0; is_under_way_ && file < files(); ++file) {
      Buffer& bytes = under_way_[static_cast<size_t>(file)];
      const Status status =
          of_file(MPI_File_write_all_end(opened(file), bytes.data(), MPI_STATUS_IGNORE), file,
                  "MPI_File_write_all_end");
      if (first.ok()) first = status;
      if (bytes.capacity() > 0) spare_.give(file, std::exchange(bytes, {}));
    }
    is_under_way_ = false;
    return first;
  }

  Status close_files() override {
    const Status finished = finish(), closed = MpiFileWriter::close_files();
    return finished.ok() ? closed : finished;
  }

  StepOffsets offsets_;
  std::vector<Buffer> under_way_;  // by file
  bool is_under_way_ = false;
};

}  // namespace

std::unique_ptr<Writer> make_mpi_collective(MPI_Comm comm, const Options& options,
                                            const Roles& roles) {
  return std::make_unique<MpiCollective>(comm, options, roles);
}

}  // namespace weir::output::writer
