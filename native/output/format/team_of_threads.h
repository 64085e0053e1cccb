// SPDX-License-Identifier: Apache-2.0
// Tests only: a team whose ranks are threads of this process, so that several owners of a file are
// tried without MPI.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "output/transport/team.h"

namespace weir::output {

class TeamOfThreads {
 public:
  explicit TeamOfThreads(int size) : size_(size), in_(static_cast<size_t>(size)) {}

  // Runs body(team) as each rank, and returns when all have ended.
  void run(const std::function<void(Team&)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; rank++) {
      threads.emplace_back([this, rank, &body] {
        Member member(*this, rank);
        body(member);
      });
    }
    for (std::thread& t : threads) t.join();
  }

 private:
  using Bytes = std::vector<char>;
  // By rank, what it has given.
  using Shared = std::shared_ptr<const std::vector<std::vector<Bytes>>>;

  class Member : public Team {
   public:
    Member(TeamOfThreads& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return all_.size_; }
    Status barrier() override { return all_.swap(rank_, {}), Status(); }
    Status broadcast(Bytes& bytes, int root) override {
      bytes = (*all_.swap(rank_, {bytes}))[static_cast<size_t>(root)][0];
      return {};
    }
    Result<std::vector<Bytes>> gather(std::span<const char> bytes, int root) override {
      std::vector<Bytes> result;
      const Shared all = all_.swap(rank_, {Bytes(bytes.begin(), bytes.end())});
      for (auto& each : *all) result.push_back(each[0]);
      if (rank_ != root) result.clear();
      return result;
    }
    Result<std::vector<Bytes>> exchange(std::vector<Bytes> to) override {
      std::vector<Bytes> result;
      const Shared all = all_.swap(rank_, std::move(to));
      for (auto& each : *all) result.push_back(each[static_cast<size_t>(rank_)]);
      return result;
    }
    Result<std::pair<int64_t, int>> maximum(int64_t value) override {
      const Shared all = all_.swap(
          rank_, {Bytes(reinterpret_cast<char*>(&value), reinterpret_cast<char*>(&value + 1))});
      std::pair<int64_t, int> best{INT64_MIN, 0};
      for (int r = 0; r < size(); r++) {
        const int64_t theirs =
            *reinterpret_cast<const int64_t*>((*all)[static_cast<size_t>(r)][0].data());
        if (theirs > best.first) best = {theirs, r};
      }
      return best;
    }
    Status agree(const Status& mine) override {
      const std::string text =
          mine.ok() ? "" : static_cast<char>('A' + mine.code()) + mine.message();
      const Shared all = all_.swap(rank_, {Bytes(text.begin(), text.end())});
      for (auto& each : *all) {
        if (!each[0].empty())
          return {static_cast<weir_status>(each[0][0] - 'A'),
                  std::string(each[0].begin() + 1, each[0].end())};
      }
      return {};
    }
    Result<std::unique_ptr<Team>> split(int, int) override {
      return Status(WEIR_E_INTERNAL, "teams of threads do not split");
    }
    const void* mpi_comm() const override { return nullptr; }

   private:
    TeamOfThreads& all_;
    int rank_;
  };

  // Everybody's contribution, when all have given theirs.
  Shared swap(int rank, std::vector<Bytes> mine) {
    std::unique_lock lock(mutex_);
    in_[static_cast<size_t>(rank)] = std::move(mine);
    const int64_t round = round_;
    if (++arrived_ == size_) {
      out_ = std::make_shared<const std::vector<std::vector<Bytes>>>(
          std::exchange(in_, std::vector<std::vector<Bytes>>(in_.size())));
      arrived_ = 0;
      round_++;
      turn_.notify_all();
    } else {
      turn_.wait(lock, [&] { return round_ != round; });
    }
    return out_;
  }

  int size_;
  std::mutex mutex_;
  std::condition_variable turn_;
  std::vector<std::vector<Bytes>> in_;
  Shared out_;
  int arrived_ = 0;
  int64_t round_ = 0;
};

}  // namespace weir::output
