// SPDX-License-Identifier: Apache-2.0
// A world whose messages of control come once and in order though single calls of the transport
// fail: each carries its number, one that could not be sent is sent again at the next call here,
// and one that came twice is dropped. Both ends of a message must use this.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "output/transport/world.h"

namespace weir::output {

class ReliableWorld : public World {
 public:
  explicit ReliableWorld(World& world) : world_(&world) {}
  explicit ReliableWorld(std::unique_ptr<World> world)
      : owned_(std::move(world)), world_(owned_.get()) {}

  Team& team() override { return world_->team(); }
  const std::vector<Site>& sites() const override { return world_->sites(); }
  void set_time_limit(double seconds) override { world_->set_time_limit(seconds); }
  double time_limit() const override { return world_->time_limit(); }
  // fails: nothing could be sent to that rank for the time limit.
  Status send(int to, std::span<const char> bytes) override;
  // fails: no call has succeeded for the time limit, or a message has not come that others came
  // after.
  Result<std::optional<Message>> receive() override;
  // Before a wait without receive: tries until all is sent, within the time limit.
  Status flush();

  std::unique_ptr<Flight> flight(int channel) override { return world_->flight(channel); }
  std::unique_ptr<Agreement> agreement(Team& team) override { return world_->agreement(team); }
  Result<std::unique_ptr<Window>> window(void* memory, int64_t bytes) override {
    return world_->window(memory, bytes);
  }
  Result<bool> fetches_progress() override { return world_->fetches_progress(); }
  void close() override { world_->close(); }

 private:
  struct Peer {
    std::deque<std::vector<char>> unsent;
    double failing_since_s = 0;
    int64_t sent = 0, received = 0;             // numbers of the next messages
    std::map<int64_t, std::vector<char>> early;  // received before one that is missing
    double missing_since_s = 0;
  };

  Status resend(int to, Peer& peer);
  void resend_all();
  // What came, with its number; the messages whose turn it is are for receive.
  void take(Message message);
  Status look_for_missing();

  std::unique_ptr<World> owned_;
  World* world_;
  std::unordered_map<int, Peer> peers_;
  std::set<int> blocked_, missing_;  // peers with unsent, and with early messages
  std::deque<Message> ready_;
  double deaf_since_s_ = 0;
};

}  // namespace weir::output
