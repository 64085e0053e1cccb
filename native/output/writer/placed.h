// SPDX-License-Identifier: Apache-2.0
// What writers share whose processes write pieces by a sink, each at an offset.
#pragma once

#include "output/writer/sink/sink.h"
#include "output/writer/wait.h"
#include "output/writer/writer.h"

namespace weir::output::writer {

class SinkWriter : public Writer {
 public:
  std::string note() const override { return sink_ != nullptr ? sink_->note() : ""; }

 protected:
  using Writer::Writer;
  // Whether this rank ever writes to the file.
  virtual bool writes(int) const { return collects(); }
  Status open_files() override;
  Status close_files() override;
  Status write(Piece piece) { return sink_->write(std::move(piece), spare_); }
  // All that was written is with the system; its memory is free.
  Status settle() { return sink_->finish(spare_); }

 private:
  std::unique_ptr<Sink> sink_;
};

// Writers that differ in where the next piece of a collector gets its offset from.
class PlacedWriter : public SinkWriter {
 protected:
  using SinkWriter::SinkWriter;
  // Give each piece its offset. Nothing of a step is placed before all of earlier ones.
  virtual Status place(std::vector<Piece>& pieces) = 0;
  // All pieces of the step have their offsets.
  virtual Status placed_step() { return {}; }

  Status flush(std::vector<Piece> pieces, bool is_last) override;
};

}  // namespace weir::output::writer
