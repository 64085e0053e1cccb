// SPDX-License-Identifier: Apache-2.0
// POSIX aio: glibc writes in threads of its own.
#include <aio.h>

#include <cerrno>

#include "output/writer/sink/descriptors.h"
#include "output/writer/sink/sink.h"

namespace weir::output::writer {
namespace {

class AioSink : public Sink {
 public:
  explicit AioSink(int files) : files_(files), slots_(static_cast<size_t>(files)) {}
  // The system must not read from memory that is gone.
  ~AioSink() override {
    Buffers rest;
    (void)finish(rest);
  }
  Status open(int file, const std::string& path) override { return files_.open(file, path); }

  Status write(Piece piece, Buffers& written) override {
    Slot& slot = slots_[static_cast<size_t>(piece.file)];
    WEIR_TRY(complete(slot, written));
    slot.piece = std::move(piece);
    slot.control = {};
    slot.control.aio_fildes = files_[slot.piece.file];
    slot.control.aio_buf = slot.piece.bytes.data();
    slot.control.aio_nbytes = slot.piece.bytes.size();
    slot.control.aio_offset = slot.piece.offset;
    if (aio_write(&slot.control) != 0) return files_.failed(slot.piece.file, errno);
    slot.is_under_way = true;
    return {};
  }

  Status finish(Buffers& written) override {
    Status first;
    for (Slot& slot : slots_) {
      if (Status status = complete(slot, written); first.ok()) first = status;
    }
    return first;
  }
  Status close() override { return files_.close(); }

 private:
  struct Slot {
    aiocb control = {};
    Piece piece;
    bool is_under_way = false;
  };

  Status complete(Slot& slot, Buffers& written) {
    if (!slot.is_under_way) return {};
    const aiocb* const list[] = {&slot.control};
    int error = 0;
    while ((error = aio_error(&slot.control)) == EINPROGRESS) aio_suspend(list, 1, nullptr);
    const ssize_t wrote = aio_return(&slot.control);
    slot.is_under_way = false;
    Status status;
    if (error != 0) {
      status = files_.failed(slot.piece.file, error);
    } else {
      status = files_.write_rest(slot.piece, static_cast<size_t>(wrote));
    }
    written.give(slot.piece.file, std::move(slot.piece.bytes));
    return status;
  }

  Descriptors files_;
  std::vector<Slot> slots_;
};

}  // namespace

std::unique_ptr<Sink> make_aio_sink(int files) { return std::make_unique<AioSink>(files); }

}  // namespace weir::output::writer
