// SPDX-License-Identifier: Apache-2.0
#include "output/writer/placed.h"

namespace weir::output::writer {

Status SinkWriter::open_files() {
  auto sink = make_sink(options_.io, files());
  if (!sink.ok()) return sink.status();
  sink_ = std::move(*sink);
  for (int file = 0; file < files(); ++file) {
    if (writes(file)) WEIR_TRY(sink_->open(file, path(file)));
  }
  return {};
}

Status SinkWriter::close_files() {
  if (sink_ == nullptr) return {};
  const Status finished = sink_->finish(spare_), closed = sink_->close();
  return finished.ok() ? closed : finished;
}

Status PlacedWriter::flush(std::vector<Piece> pieces, bool is_last) {
  Status status = pieces.empty() ? Status() : place(pieces);
  // Also after a failure: others wait for the end of the step.
  if (Status ended = is_last ? placed_step() : Status(); status.ok()) status = ended;
  WEIR_TRY(status);
  for (Piece& piece : pieces) WEIR_TRY(write(std::move(piece)));
  return {};
}

}  // namespace weir::output::writer
