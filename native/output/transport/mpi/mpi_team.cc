// SPDX-License-Identifier: Apache-2.0
#include "output/transport/mpi/mpi_team.h"

#include <algorithm>

#include "output/transport/patience.h"

namespace weir::output {

namespace {

template <typename T>
struct Buffers {
  std::vector<T> out, in;
};

using Bytes = std::vector<char>;

constexpr double kLookEvery_s = 0.5;

}  // namespace

Status mpi_status(int code, const char* call) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {WEIR_E_MPI, std::string(call) + ": " + std::string(text, static_cast<size_t>(length))};
}

int start_send(MPI_Comm comm, int to, int tag, const void* data, int64_t bytes,
               std::vector<MPI_Request>* requests) {
  int code = MPI_SUCCESS;
  for (int64_t at = 0; at < bytes && code == MPI_SUCCESS; at += kMpiPiece) {
    requests->push_back(MPI_REQUEST_NULL);
    code = MPI_Isend(static_cast<const char*>(data) + at,
                     static_cast<int>(std::min(kMpiPiece, bytes - at)), MPI_BYTE, to, tag, comm,
                     &requests->back());
  }
  return code;
}

int start_receive(MPI_Comm comm, int from, int tag, void* data, int64_t bytes,
                  std::vector<MPI_Request>* requests) {
  int code = MPI_SUCCESS;
  for (int64_t at = 0; at < bytes && code == MPI_SUCCESS; at += kMpiPiece) {
    requests->push_back(MPI_REQUEST_NULL);
    code =
        MPI_Irecv(static_cast<char*>(data) + at, static_cast<int>(std::min(kMpiPiece, bytes - at)),
                  MPI_BYTE, from, tag, comm, &requests->back());
  }
  return code;
}

// In the order in which the teams have ended, which is the same on all ranks of a communicator.
Limit::~Limit() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!closed || doubtful || finalized) return;
  for (MPI_Comm& comm : ended) MPI_Comm_free(&comm);
}

MpiTeam::MpiTeam(MPI_Comm comm, std::shared_ptr<Limit> limit)
    : comm_(comm), limit_(std::move(limit)) {
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
}

MpiTeam::~MpiTeam() {
  if (!lost_) limit_->ended.push_back(comm_);
}

// MPI may write to what is kept any time later.
Status MpiTeam::give_up(std::shared_ptr<void> keep, Status why) {
  lose();
  new std::shared_ptr<void>(std::move(keep));
  return why;
}

Status MpiTeam::begun(int code, const char* call, std::shared_ptr<void> keep) {
  return code == MPI_SUCCESS ? Status() : give_up(std::move(keep), mpi_status(code, call));
}

void MpiTeam::find_members() {
  if (!members_.empty()) return;
  std::vector<int> ranks(static_cast<size_t>(size_));
  for (int r = 0; r < size_; ++r) ranks[static_cast<size_t>(r)] = r;
  members_ = ranks;
  if (limit_->world == MPI_COMM_NULL) return;
  MPI_Group team, world;
  MPI_Comm_group(comm_, &team);
  MPI_Comm_group(limit_->world, &world);
  MPI_Group_translate_ranks(team, size_, ranks.data(), world, members_.data());
  MPI_Group_free(&team);
  MPI_Group_free(&world);
}

int MpiTeam::named(int rank) {
  find_members();
  const int member = members_[static_cast<size_t>(rank)];
  return member == MPI_UNDEFINED ? rank : member;
}

Status MpiTeam::look_for_dead(const char* what) {
  const double now = now_s();
  if (limit_->processes.empty() || now - last_look_s_ < kLookEvery_s) return {};
  last_look_s_ = now;
  find_members();
  int gone = -1;
  for (size_t r = 0; r < members_.size() && gone < 0; ++r) {
    if (members_[r] == MPI_UNDEFINED) continue;
    const base::ProcessIdentity& member = limit_->processes[static_cast<size_t>(members_[r])];
    if (member.pid != 0 && !base::alive(member)) gone = members_[r];
  }
  const bool again = gone >= 0 && gone == gone_;
  gone_ = gone;
  return again ? Status{WEIR_E_LOST,
                        std::string(what) + ": rank " + std::to_string(gone) + " is gone"}
               : Status();
}

Status MpiTeam::late(const char* what) const {
  return {WEIR_E_LOST, std::string(what) + ": a rank did not take part within " +
                           std::to_string(static_cast<int>(limit_->seconds)) + " s (time_limit_s)"};
}

Status MpiTeam::finish(std::vector<MPI_Request>& requests, std::shared_ptr<void> keep,
                       const char* what) {
  Patience patience(limit_->seconds);
  int done = 0;
  for (;;) {
    if (Status s = mpi_status(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                                          MPI_STATUSES_IGNORE),
                              what);
        !s.ok()) {
      return give_up(std::move(keep), std::move(s));
    }
    if (done) return {};
    if (patience.slow()) {
      if (Status dead = look_for_dead(what); !dead.ok())
        return give_up(std::move(keep), std::move(dead));
    }
    if (patience.wait()) continue;
    return give_up(std::move(keep), late(what));
  }
}

Status MpiTeam::end(MPI_Request& request, std::shared_ptr<void> keep, const char* what,
                    double limit_s) {
  Patience patience(limit_s);
  for (int done = 0;;) {
    const Status tested = mpi_status(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    limit_->doubtful = limit_->doubtful || !tested.ok();
    if (request == MPI_REQUEST_NULL) return {};
    if (patience.slow()) {
      if (Status dead = look_for_dead(what); !dead.ok())
        return give_up(std::move(keep), std::move(dead));
    }
    if (!patience.wait()) return give_up(std::move(keep), tested.ok() ? late(what) : tested);
  }
}

Status MpiTeam::barrier() {
  if (lost_) return {WEIR_E_LOST, "a rank was lost before"};
  MPI_Request request = MPI_REQUEST_NULL;
  WEIR_TRY(begun(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier", nullptr));
  return end(request, nullptr, "barrier", limit_->seconds);
}

// A barrier, then a vote on it. Who votes for going on knows that all have come to the barrier:
// each of them votes at its time limit at the latest.
Status MpiTeam::assemble() {
  if (lost_) return {WEIR_E_LOST, "a rank was lost before"};
  const Status here = barrier();
  auto votes = std::make_shared<Buffers<int64_t>>();
  votes->out = {here.ok() ? 1 : 0};
  votes->in = {0};
  MPI_Request request = MPI_REQUEST_NULL;
  WEIR_TRY(begun(MPI_Iallreduce(votes->out.data(), votes->in.data(), 1, MPI_INT64_T, MPI_MIN, comm_,
                                &request),
                 "MPI_Iallreduce", votes));
  if (!here.ok()) return give_up(votes, here);
  WEIR_TRY(end(request, votes, "barrier", 2 * limit_->seconds + 1));
  return votes->in[0] == 1 ? Status() : give_up(nullptr, late("barrier"));
}

Result<Bytes> MpiTeam::gather_to_all(std::span<const char> bytes) {
  if (lost_) return Status{WEIR_E_LOST, "a rank was lost before"};
  auto buffers = std::make_shared<Buffers<char>>();
  buffers->out.assign(bytes.begin(), bytes.end());
  buffers->in.resize(bytes.size() * static_cast<size_t>(size_));
  const int count = static_cast<int>(bytes.size());
  std::vector<MPI_Request> requests(1);
  WEIR_TRY(begun(MPI_Iallgather(buffers->out.data(), count, MPI_BYTE, buffers->in.data(), count,
                                MPI_BYTE, comm_, &requests[0]),
                 "MPI_Iallgather", buffers));
  WEIR_TRY(finish(requests, buffers, "MPI_Iallgather"));
  return std::move(buffers->in);
}

Result<std::vector<int64_t>> MpiTeam::sum_for_each(std::vector<int64_t> three_for_each) {
  if (lost_) return Status{WEIR_E_LOST, "a rank was lost before"};
  auto buffers = std::make_shared<Buffers<int64_t>>();
  buffers->out = std::move(three_for_each);
  buffers->in.resize(3);
  std::vector<MPI_Request> requests(1);
  WEIR_TRY(begun(MPI_Ireduce_scatter_block(buffers->out.data(), buffers->in.data(), 3, MPI_INT64_T,
                                           MPI_SUM, comm_, &requests[0]),
                 "MPI_Ireduce_scatter_block", buffers));
  WEIR_TRY(finish(requests, buffers, "end of the context"));
  return std::move(buffers->in);
}

Status MpiTeam::broadcast(Bytes& bytes, int root) {
  if (lost_) return {WEIR_E_LOST, "a rank was lost before"};
  auto size = std::make_shared<int64_t>(static_cast<int64_t>(bytes.size()));
  std::vector<MPI_Request> requests(1);
  WEIR_TRY(
      begun(MPI_Ibcast(size.get(), 1, MPI_INT64_T, root, comm_, &requests[0]), "MPI_Ibcast", size));
  WEIR_TRY(finish(requests, size, "broadcast"));
  auto buffer = std::make_shared<Bytes>(std::move(bytes));
  buffer->resize(static_cast<size_t>(*size));
  for (int64_t at = 0; at < *size; at += kMpiPiece) {
    const int count = static_cast<int>(std::min(kMpiPiece, *size - at));
    WEIR_TRY(begun(MPI_Ibcast(buffer->data() + at, count, MPI_BYTE, root, comm_, &requests[0]),
                   "MPI_Ibcast", buffer));
    WEIR_TRY(finish(requests, buffer, "broadcast"));
  }
  bytes = std::move(*buffer);
  return {};
}

Result<std::vector<int64_t>> MpiTeam::gather_sizes(int64_t mine, int root) {
  auto buffers = std::make_shared<Buffers<int64_t>>();
  buffers->out = {mine};
  buffers->in.resize(rank_ == root ? static_cast<size_t>(size_) : 0);
  std::vector<MPI_Request> requests(1);
  WEIR_TRY(begun(MPI_Igather(buffers->out.data(), 1, MPI_INT64_T, buffers->in.data(), 1,
                             MPI_INT64_T, root, comm_, &requests[0]),
                 "MPI_Igather", buffers));
  WEIR_TRY(finish(requests, buffers, "gather"));
  return std::move(buffers->in);
}

Result<std::vector<Bytes>> MpiTeam::gather(std::span<const char> bytes, int root) {
  if (lost_) return Status{WEIR_E_LOST, "a rank was lost before"};
  Result<std::vector<int64_t>> sizes = gather_sizes(static_cast<int64_t>(bytes.size()), root);
  if (!sizes.ok()) return sizes.status();
  auto buffers = std::make_shared<Buffers<Bytes>>();
  std::vector<MPI_Request> requests;
  int code = MPI_SUCCESS;
  if (rank_ == root) {
    buffers->in.resize(static_cast<size_t>(size_));
    for (int r = 0; r < size_ && code == MPI_SUCCESS; ++r) {
      buffers->in[r].resize(static_cast<size_t>((*sizes)[r]));
      if (r == root) {
        buffers->in[r].assign(bytes.begin(), bytes.end());
      } else {
        code = start_receive(comm_, r, kTagGather, buffers->in[r].data(), (*sizes)[r], &requests);
      }
    }
  } else {
    buffers->out.emplace_back(bytes.begin(), bytes.end());
    code = start_send(comm_, root, kTagGather, buffers->out[0].data(),
                      static_cast<int64_t>(bytes.size()), &requests);
  }
  WEIR_TRY(begun(code, "MPI_Isend", buffers));
  WEIR_TRY(finish(requests, buffers, "gather"));
  return std::move(buffers->in);
}

Result<std::vector<int64_t>> MpiTeam::exchange_sizes(std::vector<int64_t> to) {
  auto buffers = std::make_shared<Buffers<int64_t>>();
  buffers->out = std::move(to);
  buffers->in.resize(static_cast<size_t>(size_));
  std::vector<MPI_Request> requests(1);
  WEIR_TRY(begun(MPI_Ialltoall(buffers->out.data(), 1, MPI_INT64_T, buffers->in.data(), 1,
                               MPI_INT64_T, comm_, &requests[0]),
                 "MPI_Ialltoall", buffers));
  WEIR_TRY(finish(requests, buffers, "exchange"));
  return std::move(buffers->in);
}

Result<std::vector<Bytes>> MpiTeam::exchange(std::vector<Bytes> to) {
  if (lost_) return Status{WEIR_E_LOST, "a rank was lost before"};
  std::vector<int64_t> out;
  for (const Bytes& bytes : to) out.push_back(static_cast<int64_t>(bytes.size()));
  Result<std::vector<int64_t>> sizes = exchange_sizes(out);
  if (!sizes.ok()) return sizes.status();
  auto buffers = std::make_shared<Buffers<Bytes>>();
  buffers->in.resize(static_cast<size_t>(size_));
  buffers->out = std::move(to);
  std::vector<MPI_Request> requests;
  int code = MPI_SUCCESS;
  for (int i = 0; i < size_ && code == MPI_SUCCESS; ++i) {
    // Each rank begins with another partner, so that they do not all send to rank 0 first.
    const int from = (rank_ + i) % size_;
    buffers->in[from].resize(static_cast<size_t>((*sizes)[from]));
    if (from == rank_) {
      buffers->in[from] = std::move(buffers->out[from]);
    } else {
      code = start_receive(comm_, from, kTagExchange, buffers->in[from].data(), (*sizes)[from],
                           &requests);
    }
  }
  for (int i = 1; i < size_ && code == MPI_SUCCESS; ++i) {
    const int target = (rank_ + size_ - i) % size_;
    code = start_send(comm_, target, kTagExchange, buffers->out[target].data(), out[target],
                      &requests);
  }
  WEIR_TRY(begun(code, "MPI_Isend", buffers));
  WEIR_TRY(finish(requests, buffers, "exchange"));
  return std::move(buffers->in);
}

Result<std::pair<int64_t, int>> MpiTeam::maximum(int64_t value) {
  if (lost_) return Status{WEIR_E_LOST, "a rank was lost before"};
  auto buffers = std::make_shared<Buffers<int64_t>>();
  buffers->out = {value};
  buffers->in.resize(1);
  std::vector<MPI_Request> requests(1);
  const auto reduce = [&](MPI_Op op) {
    WEIR_TRY(begun(MPI_Iallreduce(buffers->out.data(), buffers->in.data(), 1, MPI_INT64_T, op,
                                  comm_, &requests[0]),
                   "MPI_Iallreduce", buffers));
    return finish(requests, buffers, "agreement");
  };
  WEIR_TRY(reduce(MPI_MAX));
  const int64_t greatest = buffers->in[0];
  buffers->out[0] = value == greatest ? rank_ : size_;
  WEIR_TRY(reduce(MPI_MIN));
  return std::pair<int64_t, int>{greatest, static_cast<int>(buffers->in[0])};
}

Status MpiTeam::places_differ(int64_t place, const std::string& words) {
  std::string text =
      "ranks of the model are at different places, but all must call weir_step with the same times "
      "and weir_end_step after each:";
  for (const int64_t value : {place, -place}) {
    Result<std::pair<int64_t, int>> extreme = maximum(value);
    if (!extreme.ok()) return extreme.status();
    Bytes theirs(words.begin(), words.end());
    WEIR_TRY(broadcast(theirs, extreme->second));
    text += (value == place ? " rank " : ", rank ") + std::to_string(named(extreme->second)) +
            " is at " + std::string(theirs.begin(), theirs.end());
  }
  return {WEIR_E_ORDER, text};
}

Status MpiTeam::agree_at(const Status& mine, int64_t place, const std::string& words) {
  if (lost_) return mine.ok() ? Status{WEIR_E_LOST, "a rank was lost before"} : mine;
  auto buffers = std::make_shared<Buffers<int64_t>>();
  buffers->out = {mine.ok() ? size_ : rank_, place, -place};
  buffers->in.resize(3);
  std::vector<MPI_Request> requests(1);
  // Always all three: ranks that have come by different ways find each other here, and are to see
  // it.
  WEIR_TRY(begun(MPI_Iallreduce(buffers->out.data(), buffers->in.data(), 3, MPI_INT64_T, MPI_MIN,
                                comm_, &requests[0]),
                 "MPI_Iallreduce", buffers));
  WEIR_TRY(finish(requests, buffers, "agreement"));
  if (buffers->in[1] != -buffers->in[2]) return places_differ(place, words);
  const int failed = static_cast<int>(buffers->in[0]);
  if (failed == size_) return {};
  Bytes text;
  if (rank_ == failed) {
    const std::string coded = static_cast<char>(mine.code()) + mine.message();
    text.assign(coded.begin(), coded.end());
  }
  WEIR_TRY(broadcast(text, failed));
  std::string message(text.begin(), text.end());
  const auto code = static_cast<weir_status>(message[0]);
  message.erase(0, 1);
  if (size_ > 1 && message.find("rank ") == std::string::npos)
    message += " (rank " + std::to_string(named(failed)) + ")";
  return {code, message};
}

Result<std::unique_ptr<Team>> MpiTeam::split(int colour, int key) {
  WEIR_TRY(assemble());
  MPI_Comm part = MPI_COMM_NULL;
  const Status made = mpi_status(
      MPI_Comm_split(comm_, colour < 0 ? MPI_UNDEFINED : colour, key, &part), "MPI_Comm_split");
  limit_->doubtful = limit_->doubtful || !made.ok();
  WEIR_TRY(made);
  if (part == MPI_COMM_NULL) return std::unique_ptr<Team>();
  return std::unique_ptr<Team>(std::make_unique<MpiTeam>(part, limit_));
}

}  // namespace weir::output
