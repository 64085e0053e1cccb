// SPDX-License-Identifier: Apache-2.0
#include "output/transport/mpi/mpi_world.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tuple>
#include <unordered_map>

#include "output/transport/patience.h"

namespace weir::output {

namespace {

uint64_t mixed(uint64_t hash, const void* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3ULL;
  return hash;
}

// What processes of one node have in common and others do not: kernel, host name, and the name
// space of process ids.
uint64_t node_mark() {
  char text[256] = "";
  uint64_t hash = 0xcbf29ce484222325ULL;
  if (const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); fd >= 0) {
    const ssize_t got = read(fd, text, sizeof text);
    if (got > 0) hash = mixed(hash, text, static_cast<size_t>(got));
    close(fd);
  }
  if (gethostname(text, sizeof text) == 0) hash = mixed(hash, text, strnlen(text, sizeof text));
  struct stat of;
  if (stat("/proc/self/ns/pid", &of) == 0) hash = mixed(hash, &of.st_ino, sizeof of.st_ino);
  return hash;
}

// Waits for all ranks. What they do not end together is abandoned: MPI may write the handle any
// time later.
Result<MPI_Comm> duplicate(MPI_Comm comm, double limit_s) {
  auto* own = new MPI_Comm(MPI_COMM_NULL);
  MPI_Request request = MPI_REQUEST_NULL;
  WEIR_TRY(mpi_status(MPI_Comm_idup(comm, own, &request), "MPI_Comm_idup"));
  int done = 0;
  for (Patience patience(limit_s);;) {
    WEIR_TRY(mpi_status(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Comm_idup"));
    if (done) break;
    if (patience.wait()) continue;
    return Status{
        WEIR_E_LOST,
        "MPI_Comm_idup: a rank of this communicator did not call weir_init or weir_serve within " +
            std::to_string(static_cast<int>(limit_s)) + " s (WEIR_OUTPUT_TIME_LIMIT_S)"};
  }
  const MPI_Comm result = *own;
  delete own;
  return result;
}

}  // namespace

Result<std::unique_ptr<MpiWorld>> MpiWorld::make(MPI_Comm world, double time_limit_s) {
  Result<MPI_Comm> own = duplicate(world, time_limit_s);
  if (!own.ok()) return own.status();
  std::unique_ptr<MpiWorld> made(new MpiWorld);
  made->set_time_limit(time_limit_s);
  made->team_ = std::make_unique<MpiTeam>(*own, made->limit_);
  WEIR_TRY(made->find_sites());
  return made;
}

MpiWorld::~MpiWorld() {
  drop_sent();
  // A message that its receiver never took stays with MPI.
  for (std::unique_ptr<Outgoing>& left : outgoing_) left.release();
}

Status MpiWorld::find_sites() {
  struct Mark {
    uint64_t node;
    base::ProcessIdentity process;
  };
  const int size = team_->size();
  sent_.resize(3 * static_cast<size_t>(size));
  std::vector<Mark> marks(static_cast<size_t>(size));
  const auto pid = static_cast<uint32_t>(getpid());
  const Mark mine{node_mark(), {pid, base::start_of(pid)}};
  Result<std::vector<char>> all =
      team_->gather_to_all({reinterpret_cast<const char*>(&mine), sizeof mine});
  if (!all.ok()) return all.status();
  memcpy(marks.data(), all->data(), all->size());
  const char* emulated = getenv("WEIR_NODE_RANKS");
  const int node_ranks = emulated != nullptr ? atoi(emulated) : 0;
  std::unordered_map<uint64_t, int> numbers;
  sites_.resize(static_cast<size_t>(size));
  for (int r = 0; r < size; ++r) {
    const int next = static_cast<int>(numbers.size());
    sites_[r].node =
        node_ranks > 0 ? r / node_ranks : numbers.try_emplace(marks[r].node, next).first->second;
    sites_[r].process = marks[r].process;
  }
  limit_->world = team_->comm();
  limit_->processes.resize(static_cast<size_t>(size));
  for (int r = 0; r < size; ++r) {
    if (r != team_->rank() && sites_[r].node == sites_[team_->rank()].node)
      limit_->processes[r] = sites_[r].process;
  }
  return {};
}

void MpiWorld::drop_sent() {
  while (!outgoing_.empty()) {
    Outgoing& first = *outgoing_.front();
    int done = 0;
    if (first.failed && closing_) return;
    if (first.failed) {
      first.failed = !noted(mpi_status(start(first), "MPI_Isend")).ok();
      if (first.failed) return;
    }
    if (!noted(mpi_status(MPI_Test(&first.request, &done, MPI_STATUS_IGNORE), "MPI_Test")).ok()) {
      first.failed = first.request == MPI_REQUEST_NULL;  // whether it came or not: it is sent again
      return;
    }
    if (!done) return;
    outgoing_.pop_front();
  }
}

int MpiWorld::start(Outgoing& message) {
  return MPI_Isend(message.bytes.data(), static_cast<int>(message.bytes.size()), MPI_BYTE,
                   message.to, kTagControl, comm(), &message.request);
}

Status MpiWorld::send(int to, std::span<const char> bytes) {
  drop_sent();
  auto message = std::make_unique<Outgoing>();
  message->to = to;
  message->bytes.assign(bytes.begin(), bytes.end());
  const int code = start(*message);
  if (code == MPI_SUCCESS) outgoing_.push_back(std::move(message));
  if (code == MPI_SUCCESS) ++sent_[3 * static_cast<size_t>(to)];
  return noted(mpi_status(code, "MPI_Isend"));
}

Result<std::optional<Message>> MpiWorld::receive() {
  drop_sent();
  int there = 0, count = 0;
  MPI_Status status;
  WEIR_TRY(noted(
      mpi_status(MPI_Iprobe(MPI_ANY_SOURCE, kTagControl, comm(), &there, &status), "MPI_Iprobe")));
  if (!there) return std::optional<Message>();
  MPI_Get_count(&status, MPI_BYTE, &count);
  Message message{status.MPI_SOURCE, std::vector<char>(static_cast<size_t>(count))};
  WEIR_TRY(noted(mpi_status(MPI_Recv(message.bytes.data(), count, MPI_BYTE, status.MPI_SOURCE,
                                     kTagControl, comm(), MPI_STATUS_IGNORE),
                            "MPI_Recv")));
  ++received_;
  return std::optional<Message>(std::move(message));
}

Status MpiWorld::noted(Status status) {
  if (!status.ok()) limit_->doubtful = true;
  return status;
}

// Ranks end as soon as they know enough, while the last words of others are still on their way to
// them.
void MpiWorld::close() {
  closing_ = true;
  for (size_t r = 0; r < static_cast<size_t>(size()); ++r)
    sent_[3 * r + 2] = limit_->doubtful ? 1 : 0;
  Result<std::vector<int64_t>> all = team_->sum_for_each(sent_);
  if (!all.ok()) return;
  const auto [messages, pieces, doubtful] = std::tuple((*all)[0], (*all)[1], (*all)[2]);
  if (doubtful > 0 || pieces != received_pieces_) return;
  for (Patience patience(limit_->seconds); received_ < messages;) {
    Result<std::optional<Message>> last = receive();
    if (!last.ok() || (!last->has_value() && !patience.wait())) return;
  }
  limit_->closed = true;
}

Result<MPI_Comm> MpiWorld::split_for_model(bool model) {
  MPI_Comm part = MPI_COMM_NULL;
  WEIR_TRY(team_->assemble());
  WEIR_TRY(mpi_status(MPI_Comm_split(comm(), model ? 0 : MPI_UNDEFINED, team_->rank(), &part),
                      "MPI_Comm_split"));
  // The model's communicator has MPI's own default, not weir's handler.
  if (part != MPI_COMM_NULL) MPI_Comm_set_errhandler(part, MPI_ERRORS_ARE_FATAL);
  return part;
}

}  // namespace weir::output
