// SPDX-License-Identifier: Apache-2.0
// Pieces of data between ranks, windows, agreements, and the probe of one-sided progress.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "output/transport/mpi/mpi_world.h"
#include "output/transport/patience.h"

namespace weir::output {

namespace {

class MpiWindow : public Window {
 public:
  MpiWindow(MPI_Win win, bool unified) : win_(win), unified_(unified) {}
  void release() override {
    MPI_Win_unlock_all(win_);
    MPI_Win_free(&win_);
  }
  // In the unified model this is the barrier of memory that it needs; in the separate one it brings
  // the public copy up to date.
  Status sync() override { return mpi_status(MPI_Win_sync(win_), "MPI_Win_sync"); }
  const char* memory_model() const override { return unified_ ? "unified" : "separate"; }
  MPI_Win win() const { return win_; }

 private:
  MPI_Win win_;
  bool unified_;
};

class MpiFlight : public Flight {
 public:
  MpiFlight(MpiWorld& world, int channel) : world_(world), tag_(kTagData + channel) {}
  // A request of MPI_Rget must not be freed, and one of a receive has memory that MPI writes to:
  // those that are left stay as they are.
  ~MpiFlight() override {
    if (!idle()) (void)world_.noted({WEIR_E_LOST, "pieces are under way"});
    for (MPI_Request& request : sends_) {
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
  }
  Status send(int to, const void* data, int64_t bytes) override {
    world_.count_sent_piece(to);
    return begun(start_send(world_.comm(), to, tag_, data, bytes, &sends_), "MPI_Isend", &sends_);
  }
  Status receive(int from, void* data, int64_t bytes) override {
    world_.count_received_piece();
    return begun(start_receive(world_.comm(), from, tag_, data, bytes, &others_), "MPI_Irecv",
                 &others_);
  }
  Status fetch(Window& window, int from, int64_t offset, int64_t bytes, void* data) override {
    int code = MPI_SUCCESS;
    for (int64_t at = 0; at < bytes && code == MPI_SUCCESS; at += kMpiPiece) {
      const int count = static_cast<int>(std::min(kMpiPiece, bytes - at));
      others_.push_back(MPI_REQUEST_NULL);
      code = MPI_Rget(static_cast<char*>(data) + at, count, MPI_BYTE, from, offset + at, count,
                      MPI_BYTE, static_cast<MpiWindow&>(window).win(), &others_.back());
    }
    return begun(code, "MPI_Rget", &others_);
  }
  Result<bool> finished() override {
    WEIR_TRY(test(&sends_));
    WEIR_TRY(test(&others_));
    if (!idle()) return false;
    if (!failed_.ok()) return failed_;
    return true;
  }
  bool idle() const override { return sends_.empty() && others_.empty(); }

 private:
  // Requests that have ended are dropped, also when others have failed.
  Status test(std::vector<MPI_Request>* requests) {
    if (requests->empty()) return {};
    int done = 0;
    const int code = MPI_Testall(static_cast<int>(requests->size()), requests->data(), &done,
                                 MPI_STATUSES_IGNORE);
    if (code == MPI_SUCCESS && !done) return {};
    if (code == MPI_SUCCESS) {
      requests->clear();
      return {};
    }
    const size_t before = requests->size();
    std::erase(*requests, MPI_REQUEST_NULL);
    const Status failed = world_.noted(mpi_status(code, "MPI_Testall"));
    if (requests->size() < before && failed_.ok())
      failed_ = failed;  // of one of those that have ended
    return failed;
  }
  Status begun(int code, const char* call, std::vector<MPI_Request>* requests) {
    if (code != MPI_SUCCESS) requests->pop_back();
    return world_.noted(mpi_status(code, call));
  }

  MpiWorld& world_;
  int tag_;
  std::vector<MPI_Request> sends_, others_;
  Status failed_;
};

class MpiAgreement : public Agreement {
 public:
  explicit MpiAgreement(MpiTeam& team) : team_(team), values_(new Values) {}
  ~MpiAgreement() override {
    if (request_ == MPI_REQUEST_NULL && !failed_) return;
    values_.release();  // MPI may still write to it, and goes on with it in any call: it needs the
                        // communicator, too
    team_.lose();
  }
  Status start(int64_t value, int64_t place) override {
    if (team_.lost()) return {WEIR_E_LOST, "a rank was lost before"};
    values_->mine = {value, place, -place};
    return kept(MPI_Iallreduce(values_->mine.data(), values_->greatest.data(), 3, MPI_INT64_T,
                               MPI_MAX, team_.comm(), &request_),
                "MPI_Iallreduce");
  }
  Result<std::optional<Outcome>> poll() override {
    int done = 0;
    WEIR_TRY(kept(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test"));
    if (!done) return std::optional<Outcome>();
    const auto [value, place, negative] = values_->greatest;
    return std::optional<Outcome>({value, place == -negative});
  }

 private:
  struct Values {
    std::array<int64_t, 3> mine, greatest;
  };

  Status kept(int code, const char* call) {
    failed_ = failed_ || code != MPI_SUCCESS;
    return mpi_status(code, call);
  }

  MpiTeam& team_;
  std::unique_ptr<Values> values_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<Flight> MpiWorld::flight(int channel) {
  return std::make_unique<MpiFlight>(*this, channel);
}

std::unique_ptr<Agreement> MpiWorld::agreement(Team& team) {
  return std::make_unique<MpiAgreement>(static_cast<MpiTeam&>(team));
}

Result<std::unique_ptr<Window>> MpiWorld::window(void* memory, int64_t bytes) {
#ifdef OPEN_MPI
  int all = 0;
  WEIR_TRY(mpi_status(MPI_Comm_size(MPI_COMM_WORLD, &all), "MPI_Comm_size"));
  // Open MPI's osc rdma calls the node's file of a window by the communicator's number, which other
  // ranks' communicators may have as well: at best it is refused, at worst fetches read another
  // process.
  if (size() != all) {
    return Status{WEIR_E_MPI,
                  "Open MPI confuses windows of models that share a job: use transport = \"auto\" "
                  "or \"two-sided\""};
  }
#endif
  MPI_Win win = MPI_WIN_NULL;
  WEIR_TRY(team_->assemble());
  WEIR_TRY(
      mpi_status(MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, comm(), &win), "MPI_Win_create"));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  WEIR_TRY(mpi_status(MPI_Win_lock_all(MPI_MODE_NOCHECK, win), "MPI_Win_lock_all"));
  int* model = nullptr;
  int known = 0;
  WEIR_TRY(mpi_status(MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &known), "MPI_Win_get_attr"));
  return std::unique_ptr<Window>(
      std::make_unique<MpiWindow>(win, known != 0 && *model == MPI_WIN_UNIFIED));
}

namespace {

// What a fetch that never ends goes on writing to and reading from.
struct Probe {
  static constexpr int64_t kBytes = 1 << 16;
  std::vector<char> memory = std::vector<char>(kBytes), to = std::vector<char>(kBytes);
};

Status fetch_to_the_end(Flight& fetching, Window& window, Probe& probe, double limit_s) {
  WEIR_TRY(fetching.fetch(window, 0, 0, Probe::kBytes, probe.to.data()));
  Patience patience(limit_s);
  for (;;) {
    Result<bool> done = fetching.finished();
    if (!done.ok()) return done.status();
    if (*done) return {};
    if (!patience.wait()) return {WEIR_E_LOST, "MPI_Rget from rank 0 did not end"};
  }
}

}  // namespace

// Rank 0 sleeps outside of MPI while the others fetch from it; all must have ended before it wakes.
Result<bool> MpiWorld::fetches_progress() {
  constexpr double kSleep_s = 0.2;
  auto probe = std::make_unique<Probe>();
  Result<std::unique_ptr<Window>> made = window(probe->memory.data(), Probe::kBytes);
  // An MPI that refuses windows here (Open MPI without single copies within a node) has messages
  // still.
  if (Status s = team_->agree(made.status()); !s.ok()) {
    (void)probe.release();
    return s.code() == WEIR_E_MPI ? Result<bool>(false) : Result<bool>(s);
  }
  MpiFlight fetching(*this, 0);
  Status mine = team_->barrier();
  bool progressed = true;
  if (rank() == 0) {
    usleep(static_cast<useconds_t>(kSleep_s * 1e6));
  } else if (rank() == size() - 1 && mine.ok()) {
    const double began = now_s();
    mine = fetch_to_the_end(fetching, **made, *probe, time_limit());
    progressed = now_s() - began < kSleep_s / 2;
  }
  Status all = team_->agree(mine);
  if (all.ok()) all = team_->assemble();
  if (Status s = all; !s.ok()) {
    (void)probe.release();  // with the window, which cannot be freed on this rank alone
    return s;
  }
  (*made)->release();
  Result<std::pair<int64_t, int>> slowest = team_->maximum(progressed ? 0 : 1);
  if (!slowest.ok()) return slowest.status();
  return slowest->first == 0;
}

}  // namespace weir::output
