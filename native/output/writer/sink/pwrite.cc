// SPDX-License-Identifier: Apache-2.0
// pwrite: what is under way is in the page cache.
#include "output/writer/sink/descriptors.h"
#include "output/writer/sink/sink.h"

namespace weir::output::writer {
namespace {

class PwriteSink : public Sink {
 public:
  explicit PwriteSink(int files) : files_(files) {}
  Status open(int file, const std::string& path) override { return files_.open(file, path); }
  Status write(Piece piece, Buffers& written) override {
    const Status status = files_.write_rest(piece, 0);
    written.give(piece.file, std::move(piece.bytes));
    return status;
  }
  Status finish(Buffers&) override { return {}; }
  Status close() override { return files_.close(); }

 private:
  Descriptors files_;
};

}  // namespace

std::unique_ptr<Sink> make_pwrite_sink(int files) { return std::make_unique<PwriteSink>(files); }

}  // namespace weir::output::writer
