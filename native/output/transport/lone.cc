// SPDX-License-Identifier: Apache-2.0
#include "output/transport/team.h"

namespace weir::output {

namespace {

class LoneTeam : public Team {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Status barrier() override { return {}; }
  Status broadcast(std::vector<char>&, int) override { return {}; }
  Result<std::vector<std::vector<char>>> gather(std::span<const char> bytes, int) override {
    return std::vector<std::vector<char>>{{bytes.begin(), bytes.end()}};
  }
  Result<std::vector<std::vector<char>>> exchange(std::vector<std::vector<char>> to) override {
    return to;
  }
  Result<std::pair<int64_t, int>> maximum(int64_t value) override {
    return std::pair<int64_t, int>{value, 0};
  }
  Status agree(const Status& mine) override { return mine; }
  Result<std::unique_ptr<Team>> split(int colour, int) override {
    return colour < 0 ? nullptr : lone_team();
  }
  const void* mpi_comm() const override { return nullptr; }
};

}  // namespace

std::unique_ptr<Team> lone_team() { return std::make_unique<LoneTeam>(); }

}  // namespace weir::output
