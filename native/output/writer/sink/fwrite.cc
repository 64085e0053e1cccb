// SPDX-License-Identifier: Apache-2.0
// fwrite, with fseek where a piece does not follow the one before; the stream is flushed after each
// piece, as a piece is large and its step must be in the file.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "output/writer/sink/sink.h"

namespace weir::output::writer {
namespace {

class FwriteSink : public Sink {
 public:
  explicit FwriteSink(int files) : streams_(static_cast<size_t>(files)) {}
  ~FwriteSink() override { (void)close(); }

  Status open(int file, const std::string& path) override {
    Stream& one = streams_[static_cast<size_t>(file)];
    one.path = path;
    one.file = std::fopen(path.c_str(), "r+e");
    if (one.file != nullptr) return {};
    return {WEIR_E_FILE, path + " cannot be opened for writing: " + std::strerror(errno)};
  }

  Status write(Piece piece, Buffers& written) override {
    Stream& one = streams_[static_cast<size_t>(piece.file)];
    const size_t count = piece.bytes.size();
    const bool is_written =
        (one.at == piece.offset || fseeko(one.file, piece.offset, SEEK_SET) == 0) &&
        std::fwrite(piece.bytes.data(), 1, count, one.file) == count &&
        std::fflush(one.file) == 0;
    const int error = errno;
    one.at = piece.offset + static_cast<int64_t>(count);
    written.give(piece.file, std::move(piece.bytes));
    if (is_written) return {};
    one.at = -1;
    return {WEIR_E_FILE, one.path + " cannot be written: " + std::strerror(error)};
  }

  Status finish(Buffers&) override { return {}; }

  Status close() override {
    Status first;
    for (Stream& one : streams_) {
      if (one.file != nullptr && std::fclose(one.file) != 0 && first.ok())
        first = {WEIR_E_FILE, one.path + " cannot be closed: " + std::strerror(errno)};
      one.file = nullptr;
    }
    return first;
  }

 private:
  struct Stream {
    std::FILE* file = nullptr;
    std::string path;
    int64_t at = 0;  // position
  };
  std::vector<Stream> streams_;
};

}  // namespace

std::unique_ptr<Sink> make_fwrite_sink(int files) { return std::make_unique<FwriteSink>(files); }

}  // namespace weir::output::writer
