// SPDX-License-Identifier: Apache-2.0
// World over a communicator that weir duplicates.
#pragma once

#include <mpi.h>

#include <deque>

#include "output/transport/mpi/mpi_team.h"
#include "output/transport/world.h"

namespace weir::output {

class MpiWorld : public World {
 public:
  // [collective over world] A rank that does not come within the time limit is an error on the
  // others, as at every later call.
  static Result<std::unique_ptr<MpiWorld>> make(MPI_Comm world, double time_limit_s);
  ~MpiWorld() override;

  Team& team() override { return *team_; }
  const std::vector<Site>& sites() const override { return sites_; }
  void set_time_limit(double seconds) override { limit_->seconds = seconds; }
  double time_limit() const override { return limit_->seconds; }
  Status send(int to, std::span<const char> bytes) override;
  Result<std::optional<Message>> receive() override;
  std::unique_ptr<Flight> flight(int channel) override;
  std::unique_ptr<Agreement> agreement(Team& team) override;
  Result<std::unique_ptr<Window>> window(void* memory, int64_t bytes) override;
  Result<bool> fetches_progress() override;
  void close() override;

  // The communicator for the ranks with this colour, for the model to compute with. [collective
  // over world]
  Result<MPI_Comm> split_for_model(bool model);
  MPI_Comm comm() const { return team_->comm(); }
  // Of pieces, which a Flight sends and receives.
  void count_sent_piece(int to) { ++sent_[3 * static_cast<size_t>(to) + 1]; }
  void count_received_piece() { ++received_pieces_; }
  // The same status. After one that is not fine communicators stay.
  Status noted(Status status);

 private:
  struct Outgoing {
    int to = -1;
    std::vector<char> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    bool failed = false;  // to be sent again
  };

  MpiWorld() = default;
  Status find_sites();
  int start(Outgoing& message);
  void drop_sent();

  std::shared_ptr<Limit> limit_ = std::make_shared<Limit>();
  std::unique_ptr<MpiTeam> team_;
  std::vector<Site> sites_;
  std::deque<std::unique_ptr<Outgoing>> outgoing_;
  std::vector<int64_t> sent_;  // for each rank: messages of control, pieces, and whether this
                               // rank's communicators stay
  int64_t received_ = 0, received_pieces_ = 0;
  bool closing_ = false;  // messages have been counted: none is sent again
};

}  // namespace weir::output
