// SPDX-License-Identifier: Apache-2.0
// io_uring. The kernel writes without calls that hooks could record: weir's trace has the requests
// at their submission (liburing.so is hooked), and the phase "io_uring" the waits for them.
#include "output/writer/sink/descriptors.h"
#include "output/writer/sink/sink.h"

#ifdef WEIR_WRITER_URING
#include <liburing.h>

#include <algorithm>
#include <cerrno>

#include "output/writer/phase.h"

namespace weir::output::writer {
namespace {

constexpr size_t kLongest = size_t{1} << 30;  // bytes of a request
constexpr size_t kMostParts = 1024;            // of a request: IOV_MAX

class UringSink : public Sink {
 public:
  explicit UringSink(int files) : files_(files), slots_(static_cast<size_t>(files)) {}
  ~UringSink() override {
    Buffers rest;
    (void)finish(rest);
    if (is_made_) io_uring_queue_exit(&ring_);
  }
  bool make() {
    is_made_ = io_uring_queue_init(static_cast<unsigned>(slots_.size()) + 1, &ring_, 0) == 0;
    return is_made_;
  }
  Status open(int file, const std::string& path) override { return files_.open(file, path); }

  Status write(Piece piece, Buffers& written) override {
    Slot& slot = slots_[static_cast<size_t>(piece.file)];
    while (slot.is_under_way) WEIR_TRY(reap(written));
    slot.piece = std::move(piece);
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    prepare(slot, entry);
    io_uring_sqe_set_data(entry, &slot);
    if (const int result = io_uring_submit(&ring_); result < 0)
      return files_.failed(slot.piece.file, -result);
    slot.is_under_way = true;
    ++under_way_;
    return {};
  }

  Status finish(Buffers& written) override {
    Status first;
    while (under_way_ > 0) {
      const int before = under_way_;
      if (Status status = reap(written); first.ok()) first = status;
      if (under_way_ == before) break;  // the ring is broken
    }
    return first;
  }
  Status close() override { return files_.close(); }

 private:
  struct Slot {
    Piece piece;
    std::vector<iovec> parts;  // until the request is complete
    bool is_under_way = false;
  };

  void prepare(Slot& slot, io_uring_sqe* entry) const {
    const Piece& piece = slot.piece;
    const int fd = files_[piece.file];
    const auto offset = static_cast<uint64_t>(piece.offset);
    if (piece.lent.empty()) {
      io_uring_prep_write(entry, fd, piece.bytes.data(),
                          static_cast<unsigned>(std::min(piece.bytes.size(), kLongest)), offset);
      return;
    }
    slot.parts = parts_of(piece, 0);
    io_uring_prep_writev(entry, fd, slot.parts.data(),
                         static_cast<unsigned>(std::min(slot.parts.size(), kMostParts)), offset);
  }

  // One completion. What the kernel left of a piece is written here.
  Status reap(Buffers& written) {
    io_uring_cqe* done = nullptr;
    {
      Phase phase("io_uring");
      int result = 0;
      do result = io_uring_wait_cqe(&ring_, &done);
      while (result == -EINTR);
      if (result < 0) return {WEIR_E_FILE, "io_uring_wait_cqe: the ring is broken"};
    }
    Slot& slot = *static_cast<Slot*>(io_uring_cqe_get_data(done));
    const int wrote = done->res;
    io_uring_cqe_seen(&ring_, done);
    slot.is_under_way = false;
    --under_way_;
    Status status;
    if (wrote < 0 && wrote != -EINTR && wrote != -EAGAIN) {
      status = files_.failed(slot.piece.file, -wrote);
    } else {
      status = files_.write_rest(slot.piece, static_cast<size_t>(std::max(wrote, 0)));
    }
    written.give(slot.piece.file, std::move(slot.piece.bytes));
    return status;
  }

  Descriptors files_;
  std::vector<Slot> slots_;
  io_uring ring_;
  bool is_made_ = false;
  int under_way_ = 0;
};

}  // namespace

std::unique_ptr<Sink> make_uring_sink(int files) {
  auto sink = std::make_unique<UringSink>(files);
  if (!sink->make()) return nullptr;
  return sink;
}

}  // namespace weir::output::writer

#else

namespace weir::output::writer {

std::unique_ptr<Sink> make_uring_sink(int) { return nullptr; }

}  // namespace weir::output::writer
#endif
