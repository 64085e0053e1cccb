// SPDX-License-Identifier: Apache-2.0
// io_uring. The kernel writes without calls that hooks could record: weir's trace has the requests
// at their submission (liburing.so is hooked), and the phase "io_uring" the waits for them.
// A kernel may refuse the ring, a submission, or a request for reasons that are no fault of the
// file; `auto` then writes by pwrite, whose errno counts.
#include "output/writer/sink/descriptors.h"
#include "output/writer/sink/sink.h"

#ifdef WEIR_WRITER_URING
#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "output/writer/phase.h"

namespace weir::output::writer {
namespace {

constexpr size_t kLongest = size_t{1} << 30;  // bytes of a request
constexpr size_t kMostParts = 1024;            // of a request: IOV_MAX

// Of the kernel or its threads, not of the file: pwrite may succeed. EIO is also what FUSE gives
// for a short write that it was not waited for (with FOPEN_DIRECT_IO), where pwrite gives what was
// written and then the reason, such as a full disk.
bool is_of_the_ring(int error) {
  return error == EINTR || error == EAGAIN || error == ECANCELED || error == EINVAL ||
         error == EOPNOTSUPP || error == ENOMEM || error == EIO;
}

class UringSink : public Sink {
 public:
  UringSink(int files, bool falls_back)
      : files_(files), slots_(static_cast<size_t>(files)), falls_back_(falls_back) {}
  ~UringSink() override {
    Buffers rest;
    (void)finish(rest);
    if (is_made_) io_uring_queue_exit(&ring_);
  }
  bool make() {
    const int result = io_uring_queue_init(static_cast<unsigned>(slots_.size()) + 1, &ring_, 0);
    is_made_ = result == 0;
    if (!is_made_) give_up(std::string("io_uring_queue_init: ") + std::strerror(-result));
    return is_made_;
  }
  // The ring, if there is one, is not submitted to from here on.
  void give_up(std::string reason) { note_ = std::move(reason); }
  Status open(int file, const std::string& path) override { return files_.open(file, path); }

  Status write(Piece piece, Buffers& written) override {
    Slot& slot = slots_[static_cast<size_t>(piece.file)];
    while (slot.is_under_way) WEIR_TRY(reap(written));
    slot.piece = std::move(piece);
    if (submit(slot)) return {};
    if (!falls_back_)
      return {WEIR_E_FILE, "the kernel takes no requests (" + note_ + "); use auto or pwrite"};
    return complete(slot, 0, written);
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
  std::string note() const override { return note_; }

 private:
  struct Slot {
    Piece piece;
    std::vector<iovec> parts;  // until the request is complete
    bool is_under_way = false;
  };

  // False: a request that the kernel did not take stays in the ring, so the ring is not submitted
  // to again.
  bool submit(Slot& slot) {
    if (!note_.empty()) return false;
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    prepare(slot, entry);
    io_uring_sqe_set_data(entry, &slot);
    if (const int result = io_uring_submit(&ring_); result != 1) {
      give_up(std::string("io_uring_submit: ") + std::strerror(result < 0 ? -result : EBUSY));
      return false;
    }
    slot.is_under_way = true;
    ++under_way_;
    return true;
  }

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
      if (result < 0) {
        return {WEIR_E_FILE, std::string("requests of io_uring cannot be waited for: ") +
                                 std::strerror(-result)};
      }
    }
    Slot& slot = *static_cast<Slot*>(io_uring_cqe_get_data(done));
    const int wrote = done->res;
    io_uring_cqe_seen(&ring_, done);
    slot.is_under_way = false;
    --under_way_;
    if (wrote < 0 && !is_of_the_ring(-wrote)) {
      written.give(slot.piece.file, std::move(slot.piece.bytes));
      return files_.failed(slot.piece.file, -wrote);
    }
    return complete(slot, static_cast<size_t>(std::max(wrote, 0)), written);
  }

  // What the kernel left of a piece.
  Status complete(Slot& slot, size_t wrote, Buffers& written) {
    const Status status = files_.write_rest(slot.piece, wrote);
    written.give(slot.piece.file, std::move(slot.piece.bytes));
    return status;
  }

  Descriptors files_;
  std::vector<Slot> slots_;
  io_uring ring_;
  const bool falls_back_;
  bool is_made_ = false;
  int under_way_ = 0;
  std::string note_;  // not empty: the ring is not submitted to
};

}  // namespace

std::unique_ptr<Sink> make_uring_sink(int files) {
  auto sink = std::make_unique<UringSink>(files, false);
  if (!sink->make()) return nullptr;
  return sink;
}

std::unique_ptr<Sink> make_auto_sink(int files) {
  auto sink = std::make_unique<UringSink>(files, true);
  // With a ring the preload library would take its layers away, for all files.
  if (const char* rules = std::getenv("WEIR_RULES"); rules != nullptr && *rules != '\0') {
    sink->give_up("it would bypass the layers of WEIR_RULES");
  } else {
    (void)sink->make();
  }
  return sink;
}

}  // namespace weir::output::writer

#else

namespace weir::output::writer {

std::unique_ptr<Sink> make_uring_sink(int) { return nullptr; }
std::unique_ptr<Sink> make_auto_sink(int files) { return make_pwrite_sink(files); }

}  // namespace weir::output::writer
#endif
