// SPDX-License-Identifier: Apache-2.0
#include "output/writer/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "output/writer/wait.h"

namespace weir::output::writer {

Writer::Writer(MPI_Comm comm, Options options, Roles roles)
    : options_(std::move(options)), roles_(std::move(roles)) {
  MPI_Comm_dup(comm, &comm_);
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm_, &rank_);
  const auto found = std::ranges::find(roles_.collectors, rank_);
  if (found != roles_.collectors.end()) at_ = static_cast<int>(found - roles_.collectors.begin());
  MPI_Comm_split(comm_, at_ >= 0 ? 0 : MPI_UNDEFINED, rank_, &collectors_);
  if (at_ >= 0) MPI_Comm_set_errhandler(collectors_, MPI_ERRORS_RETURN);
  filling_.resize(options_.files.size());
  lent_.resize(options_.files.size());
}

Writer::~Writer() {
  // Where a rank was lost, freeing a communicator would wait for it.
  if (failed_.code() == WEIR_E_LOST || failed_.code() == WEIR_E_MPI) return;
  if (collectors_ != MPI_COMM_NULL) MPI_Comm_free(&collectors_);
  MPI_Comm_free(&comm_);
}

Status Writer::create(int file) const {
  const int fd = ::open(path(file).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd >= 0 && ::close(fd) == 0) return {};
  return {WEIR_E_FILE, path(file) + " cannot be created: " + std::strerror(errno)};
}

Status Writer::keep(Status status) {
  if (failed_.ok()) failed_ = status;
  return status;
}

Status Writer::open() {
  Status created;
  for (int file = 0; rank_ == 0 && created.ok() && file < files(); ++file) created = create(file);
  (void)keep(created);
  WEIR_TRY(agree());
  (void)keep(open_files());
  return agree();
}

Status Writer::append(int file, std::span<const char> record, Lifetime lifetime) {
  WEIR_TRY(keep(progress()));
  if (!failed_.ok()) return failed_;
  if (lifetime == Lifetime::kTwoSteps && takes_lent()) {
    lent_[static_cast<size_t>(file)].push_back(record);
    return {};
  }
  Buffer& buffer = filling_[static_cast<size_t>(file)];
  if (buffer.capacity() == 0) buffer = spare_.take(file);
  const bool is_full = buffer.size() + record.size() > options_.buffer_bytes && !buffer.empty();
  if (is_full && flushes_full_buffers()) {
    std::vector<Piece> pieces;
    pieces.push_back({file, std::exchange(buffer, spare_.take(file)), -1, {}});
    WEIR_TRY(keep(flush(std::move(pieces), false)));
  }
  buffer.insert(buffer.end(), record.begin(), record.end());
  return {};
}

Status Writer::end_step() {
  std::vector<Piece> pieces;
  for (int file = 0; file < files(); ++file) {
    Buffer& buffer = filling_[static_cast<size_t>(file)];
    auto lent = std::exchange(lent_[static_cast<size_t>(file)], {});
    if (buffer.empty() && lent.empty()) continue;
    if (failed_.ok()) {
      Buffer next = buffer.empty() ? Buffer() : spare_.take(file);
      pieces.push_back({file, std::exchange(buffer, std::move(next)), -1, std::move(lent)});
    }
    buffer.clear();
  }
  return keep(flush(std::move(pieces), true));
}

Status Writer::serve() { return keep(serve_files()); }

Status Writer::close() {
  (void)keep(close_files());
  return agree();
}

// The first failure, of the lowest rank that has one, becomes everybody's.
Status Writer::agree() {
  if (failed_.code() == WEIR_E_LOST) return failed_;  // the others find out themselves
  int mine = failed_.ok() ? INT32_MAX : rank_, first = 0;
  MPI_Request request;
  WEIR_TRY(keep(from_mpi(MPI_Iallreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm_, &request),
                         "MPI_Iallreduce")));
  WEIR_TRY(keep(wait(&request, "the result of another rank", options_.limit_s)));
  if (first == INT32_MAX) return {};
  struct {
    int code;
    char text[508];
  } said = {failed_.code(), {}};
  std::strncpy(said.text, failed_.message().c_str(), sizeof said.text - 1);
  WEIR_TRY(keep(from_mpi(MPI_Ibcast(&said, sizeof said, MPI_BYTE, first, comm_, &request),
                         "MPI_Ibcast")));
  WEIR_TRY(keep(wait(&request, "the reason of another rank", options_.limit_s)));
  if (!failed_.ok()) return failed_;
  return keep({static_cast<weir_status>(said.code),
               "rank " + std::to_string(first) + ": " + said.text});
}

}  // namespace weir::output::writer
