// SPDX-License-Identifier: Apache-2.0
#include "output/writer/placed.h"
#include "output/writer/writers.h"

namespace weir::output::writer {
namespace {

constexpr int kAsk = 1, kAnswer = 2;

// A message to the guard: one number of bytes for each file, 0 for most; an empty one: the
// collector closes. The answer: one offset for each file.
class OffsetGuard : public PlacedWriter {
 public:
  using PlacedWriter::PlacedWriter;

 private:
  int guard() const { return static_cast<int>(roles_.collectors.size()); }  // the last rank

  Status place(std::vector<Piece>& pieces) override {
    WEIR_TRY(gate_.pass(options_.limit_s));
    std::vector<int64_t> sizes(options_.files.size()), offsets(options_.files.size());
    for (const Piece& piece : pieces)
      sizes[static_cast<size_t>(piece.file)] = static_cast<int64_t>(piece.bytes.size());
    MPI_Request asked, answered;
    WEIR_TRY(from_mpi(MPI_Irecv(offsets.data(), files(), MPI_INT64_T, guard(), kAnswer, comm_,
                                &answered),
                      "MPI_Irecv"));
    WEIR_TRY(from_mpi(MPI_Isend(sizes.data(), files(), MPI_INT64_T, guard(), kAsk, comm_, &asked),
                      "MPI_Isend"));
    Status status = wait(&answered, "the guard's answer", options_.limit_s);
    if (status.ok()) status = wait(&asked, "a message to the guard", options_.limit_s);
    if (!status.ok()) return give_up(status, {asked, answered});
    for (Piece& piece : pieces) piece.offset = offsets[static_cast<size_t>(piece.file)];
    return {};
  }

  // MPI must not write to memory that is gone.
  static Status give_up(const Status& why, std::vector<MPI_Request> requests) {
    for (MPI_Request& request : requests) {
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
    return why;
  }

  Status placed_step() override { return gate_.ended(collectors_, options_.limit_s); }

  Status close_files() override {
    Status status = gate_.pass(options_.limit_s);
    if (collects() && status.ok()) {
      MPI_Request request;
      status = from_mpi(MPI_Isend(nullptr, 0, MPI_INT64_T, guard(), kAsk, comm_, &request),
                        "MPI_Isend");
      if (status.ok()) status = wait(&request, "a message to the guard", options_.limit_s);
    }
    const Status closed = PlacedWriter::close_files();
    return status.ok() ? closed : status;
  }

  Status serve_files() override {
    std::vector<int64_t> ends(options_.files.size()), asked(ends.size()), answer(ends.size());
    for (size_t closed = 0; closed < roles_.collectors.size();) {
      MPI_Status from;
      WEIR_TRY(probe(kAsk, comm_, "a collector's question", options_.limit_s, &from));
      int count = 0;
      MPI_Get_count(&from, MPI_INT64_T, &count);
      WEIR_TRY(from_mpi(MPI_Recv(asked.data(), files(), MPI_INT64_T, from.MPI_SOURCE, kAsk, comm_,
                                 MPI_STATUS_IGNORE),
                        "MPI_Recv"));
      closed += count == 0;
      if (count == 0) continue;
      for (size_t file = 0; file < ends.size(); ++file)
        answer[file] = std::exchange(ends[file], ends[file] + asked[file]);
      WEIR_TRY(from_mpi(
          MPI_Send(answer.data(), files(), MPI_INT64_T, from.MPI_SOURCE, kAnswer, comm_),
          "MPI_Send"));
    }
    return {};
  }

  StepGate gate_;
};

}  // namespace

std::unique_ptr<Writer> make_offset_guard(MPI_Comm comm, const Options& options,
                                          const Roles& roles) {
  return std::make_unique<OffsetGuard>(comm, options, roles);
}

}  // namespace weir::output::writer
