// SPDX-License-Identifier: Apache-2.0
#include "output/writer/placed.h"
#include "output/writer/writers.h"

namespace weir::output::writer {
namespace {

class Serial : public PlacedWriter {
 public:
  Serial(MPI_Comm comm, const Options& options, const Roles& roles)
      : PlacedWriter(comm, options, roles), ends_(options.files.size()) {}

 private:
  Status place(std::vector<Piece>& pieces) override {
    for (Piece& piece : pieces) {
      int64_t& end = ends_[static_cast<size_t>(piece.file)];
      piece.offset = std::exchange(end, end + static_cast<int64_t>(piece.bytes.size()));
    }
    return {};
  }

  std::vector<int64_t> ends_;  // of the files
};

}  // namespace

std::unique_ptr<Writer> make_serial(MPI_Comm comm, const Options& options, const Roles& roles) {
  return std::make_unique<Serial>(comm, options, roles);
}

}  // namespace weir::output::writer
