// SPDX-License-Identifier: Apache-2.0
#include "output/writer/placed.h"
#include "output/writer/step_offsets.h"
#include "output/writer/writers.h"

namespace weir::output::writer {
namespace {

class Direct : public SinkWriter {
 public:
  Direct(MPI_Comm comm, const Options& options, const Roles& roles)
      : SinkWriter(comm, options, roles), offsets_(files()) {}

 private:
  bool flushes_full_buffers() const override { return false; }
  bool takes_lent() const override { return takes_parts(options_.io); }

  Status flush(std::vector<Piece> pieces, bool) override {
    Status earlier = write_step();
    step_ = std::move(pieces);
    const Status begun = offsets_.begin(step_, collectors_);
    return earlier.ok() ? begun : earlier;
  }

  Status progress() override {
    if (!offsets_.is_under_way()) return {};
    auto have_come = offsets_.test();
    if (!have_come.ok()) return have_come.status();
    return *have_come ? write_step() : Status();
  }

  // The step that waits for its offsets.
  Status write_step() {
    if (!offsets_.is_under_way()) return {};
    WEIR_TRY(offsets_.place(step_, options_.limit_s));
    // The step before: it had the time of a step, and its records may be the caller's.
    WEIR_TRY(settle());
    for (Piece& piece : step_) WEIR_TRY(write(std::move(piece)));
    step_.clear();
    return {};
  }

  Status close_files() override {
    const Status written = write_step(), closed = SinkWriter::close_files();
    return written.ok() ? closed : written;
  }

  StepOffsets offsets_;
  std::vector<Piece> step_;
};

}  // namespace

std::unique_ptr<Writer> make_direct(MPI_Comm comm, const Options& options, const Roles& roles) {
  return std::make_unique<Direct>(comm, options, roles);
}

}  // namespace weir::output::writer
