// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "output/writer/placed.h"
#include "output/writer/writers.h"

namespace weir::output::writer {
namespace {

// Behind the bytes of each message to a writer.
struct Trailer {
  int32_t file;      // -1: there are no bytes
  int16_t is_last;   // of this collector in this step
  int16_t is_close;  // the collector has no more steps
};

// A message bears the number of its step as its tag: a writer takes those of one step until all
// collectors have ended it, so records of the next one stay behind.
class Posix : public SinkWriter {
 public:
  Posix(MPI_Comm comm, const Options& options, const Roles& roles)
      : SinkWriter(comm, options, roles), under_way_(options.files.size()) {}

 private:
  static constexpr int kTags = 16384;
  struct Message {
    MPI_Request request = MPI_REQUEST_NULL;
    int file = -1;
    Buffer bytes;
  };

  int writer_of(int file) const {
    return roles_.writers[static_cast<size_t>(file) % roles_.writers.size()];
  }
  bool writes(int file) const override { return writer_of(file) == rank_; }
  int tag() const { return static_cast<int>(step_ % kTags); }

  // ---- collectors
  Status flush(std::vector<Piece> pieces, bool is_last) override {
    Status first;
    for (Piece& piece : pieces) {
      if (const Status status = send_piece(std::move(piece)); first.ok()) first = status;
    }
    if (!is_last) return first;
    const Status ended = send_to_all({-1, 1, 0});
    ++step_;
    return first.ok() ? ended : first;
  }

  // The file's piece before this one has left its buffer then.
  Status send_piece(Piece piece) {
    const int file = piece.file, to = writer_of(file);
    if (piece.bytes.size() > INT32_MAX - sizeof(Trailer))
      return {WEIR_E_FILE, path(file) + ": a record of more than 2 GiB"};
    return send(under_way_[static_cast<size_t>(file)], to, {file, 0, 0}, std::move(piece.bytes));
  }

  Status send_to_all(Trailer trailer) {
    ends_.resize(roles_.writers.size());
    for (size_t i = 0; i < ends_.size(); ++i)
      WEIR_TRY(send(ends_[i], roles_.writers[i], trailer, Buffer()));
    return {};
  }

  Status send(Message& message, int to, Trailer trailer, Buffer bytes) {
    WEIR_TRY(complete(message));
    message.file = trailer.file;
    message.bytes = std::move(bytes);
    const auto* begin = reinterpret_cast<const char*>(&trailer);
    message.bytes.insert(message.bytes.end(), begin, begin + sizeof trailer);
    return from_mpi(MPI_Isend(message.bytes.data(), static_cast<int>(message.bytes.size()),
                              MPI_BYTE, to, tag(), comm_, &message.request),
                    "MPI_Isend");
  }

  // A writer that did not take one buffer in time is not waited for again.
  Status complete(Message& message) {
    if (message.request == MPI_REQUEST_NULL) return {};
    const Status status = wait(&message.request, "a writer, which is to take a buffer,",
                               lost_ ? 0 : options_.limit_s);
    lost_ = lost_ || status.code() == WEIR_E_LOST;
    WEIR_TRY(status);
    if (message.file >= 0) spare_.give(message.file, std::move(message.bytes));
    return {};
  }

  Status close_files() override {
    Status first;
    if (collects()) first = send_to_all({-1, 1, 1});
    for (auto* messages : {&under_way_, &ends_}) {
      for (Message& message : *messages) {
        if (const Status status = complete(message); first.ok()) first = status;
      }
    }
    const Status closed = SinkWriter::close_files();
    return first.ok() ? closed : first;
  }

  // ---- processes that write
  Status serve_files() override {
    for (bool is_closed = false; !is_closed; ++step_) WEIR_TRY(serve_step(&is_closed));
    return failed_write_;
  }

  Status serve_step(bool* is_closed) {
    for (size_t ended = 0; ended < roles_.collectors.size();) {
      MPI_Status from;
      WEIR_TRY(probe(tag(), comm_, "a collector's buffer", options_.limit_s, &from));
      int count = 0;
      MPI_Get_count(&from, MPI_BYTE, &count);
      Piece piece{0, spare_.take_any()};
      piece.bytes.resize(static_cast<size_t>(count));
      WEIR_TRY(from_mpi(MPI_Recv(piece.bytes.data(), count, MPI_BYTE, from.MPI_SOURCE, tag(), comm_,
                                 MPI_STATUS_IGNORE),
                        "MPI_Recv"));
      Trailer trailer;
      const size_t bytes = piece.bytes.size() - sizeof trailer;
      std::memcpy(&trailer, piece.bytes.data() + bytes, sizeof trailer);
      piece.bytes.resize(bytes);
      piece.file = trailer.file;
      ended += trailer.is_last != 0;
      *is_closed |= trailer.is_close != 0;
      if (trailer.file >= 0) append_piece(std::move(piece));
    }
    return {};
  }

  // After a failure bytes are dropped: collectors must be able to go on to their end.
  void append_piece(Piece piece) {
    int64_t& end = ends_of_files_[static_cast<size_t>(piece.file)];
    piece.offset = std::exchange(end, end + static_cast<int64_t>(piece.bytes.size()));
    if (failed_write_.ok()) failed_write_ = write(std::move(piece));
  }

  std::vector<Message> under_way_, ends_;  // by file; by writer
  std::vector<int64_t> ends_of_files_ = std::vector<int64_t>(options_.files.size());
  Status failed_write_;
  int64_t step_ = 0;
  bool lost_ = false;
};

}  // namespace

std::unique_ptr<Writer> make_posix(MPI_Comm comm, const Options& options, const Roles& roles) {
  return std::make_unique<Posix>(comm, options, roles);
}

}  // namespace weir::output::writer
