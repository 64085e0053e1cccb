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
  explicit MpiWindow(MPI_Win win) : win_(win) {}
  void release() override {
    MPI_Win_unlock_all(win_);
    MPI_Win_free(&win_);
  }
  MPI_Win win() const { return win_; }

 private:
  MPI_Win win_;
};

class MpiFlight : public Flight {
 public:
  explicit MpiFlight(MPI_Comm comm) : comm_(comm) {}
  ~MpiFlight() override {
    for (MPI_Request& request : requests_) {
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
  }
  Status send(int to, const void* data, int64_t bytes) override {
    return mpi_status(start_send(comm_, to, kTagData, data, bytes, &requests_), "MPI_Isend");
  }
  Status receive(int from, void* data, int64_t bytes) override {
    return mpi_status(start_receive(comm_, from, kTagData, data, bytes, &requests_), "MPI_Irecv");
  }
  Status fetch(Window& window, int from, int64_t offset, int64_t bytes, void* data) override {
    int code = MPI_SUCCESS;
    for (int64_t at = 0; at < bytes && code == MPI_SUCCESS; at += kMpiPiece) {
      const int count = static_cast<int>(std::min(kMpiPiece, bytes - at));
      requests_.push_back(MPI_REQUEST_NULL);
      code = MPI_Rget(static_cast<char*>(data) + at, count, MPI_BYTE, from, offset + at, count, MPI_BYTE,
                      static_cast<MpiWindow&>(window).win(), &requests_.back());
    }
    return mpi_status(code, "MPI_Rget");
  }
  Result<bool> finished() override {
    if (requests_.empty()) return true;
    int done = 0;
    WEIR_TRY(mpi_status(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall"));
    if (done) requests_.clear();
    return done != 0;
  }

 private:
  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;
};

class MpiAgreement : public Agreement {
 public:
  explicit MpiAgreement(MpiTeam& team) : team_(team), values_(new Values) {}
  ~MpiAgreement() override {
    if (request_ == MPI_REQUEST_NULL && !failed_) return;
    values_.release();  // MPI may still write to it, and goes on with it in any call: it needs the communicator, too
    team_.lose();
  }
  Status start(int64_t value, int64_t place) override {
    values_->mine = {value, place, -place};
    return kept(MPI_Iallreduce(values_->mine.data(), values_->greatest.data(), 3, MPI_INT64_T, MPI_MAX, team_.comm(), &request_), "MPI_Iallreduce");
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

std::unique_ptr<Flight> MpiWorld::flight() { return std::make_unique<MpiFlight>(comm()); }

std::unique_ptr<Agreement> MpiWorld::agreement(Team& team) {
  return std::make_unique<MpiAgreement>(static_cast<MpiTeam&>(team));
}

Result<std::unique_ptr<Window>> MpiWorld::window(void* memory, int64_t bytes) {
#ifdef OPEN_MPI
  int all = 0;
  WEIR_TRY(mpi_status(MPI_Comm_size(MPI_COMM_WORLD, &all), "MPI_Comm_size"));
  // Open MPI's osc rdma calls the node's file of a window by the communicator's number, which other ranks' communicators may have as
  // well: at best it is refused, at worst fetches read another process.
  if (size() != all) {
    return Status{WEIR_E_MPI, "Open MPI confuses windows of models that share a job: use transport = \"auto\" or \"two-sided\""};
  }
#endif
  MPI_Win win = MPI_WIN_NULL;
  WEIR_TRY(mpi_status(MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, comm(), &win), "MPI_Win_create"));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  WEIR_TRY(mpi_status(MPI_Win_lock_all(MPI_MODE_NOCHECK, win), "MPI_Win_lock_all"));
  return std::unique_ptr<Window>(std::make_unique<MpiWindow>(win));
}

// Rank 0 sleeps outside of MPI while the others fetch from it; all must have ended before it wakes.
Result<bool> MpiWorld::fetches_progress() {
  constexpr int64_t kBytes = 1 << 16;
  constexpr double kSleep_s = 0.2;
  std::vector<char> memory(kBytes), to(kBytes);
  Result<std::unique_ptr<Window>> made = window(memory.data(), kBytes);
  // An MPI that refuses windows here (Open MPI without single copies within a node) has messages still.
  if (Status s = team_->agree(made.status()); !s.ok()) return s.code() == WEIR_E_MPI ? Result<bool>(false) : Result<bool>(s);
  WEIR_TRY(team_->barrier());
  bool progressed = true;
  if (rank() == 0) {
    usleep(static_cast<useconds_t>(kSleep_s * 1e6));
  } else if (rank() == size() - 1) {
    const double began = now_s();
    MpiFlight fetching(comm());
    WEIR_TRY(fetching.fetch(**made, 0, 0, kBytes, to.data()));
    Patience patience(time_limit());
    for (Result<bool> done = fetching.finished(); !done.ok() || !*done; done = fetching.finished()) {
      if (!done.ok()) return done.status();
      if (!patience.wait()) return Status{WEIR_E_LOST, "MPI_Rget from rank 0 did not end"};
    }
    progressed = now_s() - began < kSleep_s / 2;
  }
  WEIR_TRY(team_->barrier());
  (*made)->release();
  Result<std::pair<int64_t, int>> slowest = team_->maximum(progressed ? 0 : 1);
  if (!slowest.ok()) return slowest.status();
  return slowest->first == 0;
}

}  // namespace weir::output
