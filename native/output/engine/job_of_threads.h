// SPDX-License-Identifier: Apache-2.0
// Tests only: a job whose ranks are threads of a schedule, over a transport of which one call
// fails: the k-th of one rank, or that and all later ones. As MPI does it, a piece is taken for
// whatever was sent first on its channel, a collective is matched with the next one of the others,
// what was begun goes on writing to its memory until it has ended, and what others fetch is what
// the window's owner had at its last sync (MPI_WIN_SEPARATE).
#pragma once

#include <unistd.h>

#include <cstring>
#include <deque>
#include <map>
#include <tuple>

#include "output/engine/schedule_of_threads.h"
#include "output/transport/world.h"

namespace weir::output {

struct Job {
  using Bytes = std::vector<char>;
  struct Meeting {  // of a collective
    std::vector<Bytes> parts;
    std::string what;
    int came = 0;
  };
  struct Posted {
    char* to;
    int64_t bytes;
    std::shared_ptr<bool> done;
  };
  using Channel = std::tuple<int, int, int>;  // from, to, number

  Job(int ranks, unsigned seed)
      : schedule(seed),
        size(ranks),
        control(static_cast<size_t>(ranks)),
        calls(static_cast<size_t>(ranks)) {}

  // Whether the call is the one that fails.
  bool fails(int rank, const char* call) {
    schedule.call();
    const int64_t number = ++calls[static_cast<size_t>(rank)];
    if (rank != fail_rank || (number != fail_at && !(for_ever && number > fail_at))) return false;
    if (number == fail_at) failed = call;
    return true;
  }
  static Status failure(const char* call) {
    return {WEIR_E_MPI, std::string(call) + ": made to fail"};
  }

  // Pieces and receives of a channel find each other in order.
  void match(const Channel& channel) {
    auto& sent = pieces[channel];
    auto& wanted = posted[channel];
    for (; !sent.empty() && !wanted.empty(); sent.pop_front(), wanted.pop_front()) {
      if (static_cast<int64_t>(sent.front().size()) != wanted.front().bytes)
        broken = "a piece of another length than was expected";
      memcpy(wanted.front().to, sent.front().data(),
             std::min<size_t>(sent.front().size(), static_cast<size_t>(wanted.front().bytes)));
      *wanted.front().done = true;
    }
  }

  struct Memory {
    char* own;
    Bytes public_copy;
  };

  Schedule schedule;
  int size;
  double limit_s = 4;
  int fail_rank = -1, fail_at = -1;
  bool for_ever = false;  // and all calls of the rank after it
  std::map<std::pair<std::string, int64_t>, Meeting> meetings;  // by team and place
  // Teams that a rank has left, and the first place to which it does not come.
  std::map<std::string, int64_t> lost;
  std::vector<std::deque<Message>> control;
  std::map<Channel, std::deque<Bytes>> pieces;
  std::map<Channel, std::deque<Posted>> posted;
  std::map<std::pair<int64_t, int>, Memory> windows;  // by number and rank
  std::vector<int64_t> calls;                        // by rank
  std::string failed, broken;
};

class ThreadTeam : public Team {
 public:
  ThreadTeam(Job& job, std::string name, std::vector<int> members, int rank)
      : job_(job), name_(std::move(name)), members_(std::move(members)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  Status barrier() override { return meet("barrier", {}).status(); }
  Status broadcast(std::vector<char>& bytes, int root) override {
    auto all = meet("broadcast", bytes);
    if (all.ok()) bytes = (*all)[static_cast<size_t>(root)];
    return all.status();
  }
  Result<std::vector<std::vector<char>>> gather(std::span<const char> bytes, int root) override {
    auto all = meet("gather", {bytes.begin(), bytes.end()});
    if (all.ok() && rank_ != root) all->clear();
    return all;
  }
  Result<std::vector<std::vector<char>>> exchange(std::vector<std::vector<char>> to) override {
    std::vector<std::vector<char>> from;
    Job::Bytes packed;
    for (const auto& part : to) {
      const auto bytes = static_cast<int64_t>(part.size());
      packed.insert(packed.end(), reinterpret_cast<const char*>(&bytes),
                    reinterpret_cast<const char*>(&bytes + 1));
      packed.insert(packed.end(), part.begin(), part.end());
    }
    auto all = meet("exchange", packed);
    if (!all.ok()) return all.status();
    for (const Job::Bytes& theirs : *all) {
      size_t at = 0;
      for (int r = 0;; ++r) {
        int64_t bytes = 0;
        memcpy(&bytes, theirs.data() + at, sizeof bytes);
        at += sizeof bytes;
        if (r == rank_) {
          from.emplace_back(theirs.begin() + static_cast<long>(at),
                            theirs.begin() + static_cast<long>(at) + bytes);
          break;
        }
        at += static_cast<size_t>(bytes);
      }
    }
    return from;
  }
  Result<std::pair<int64_t, int>> maximum(int64_t value) override {
    auto all = meet("maximum", Job::Bytes(reinterpret_cast<char*>(&value),
                                          reinterpret_cast<char*>(&value + 1)));
    if (!all.ok()) return all.status();
    std::pair<int64_t, int> best{INT64_MIN, 0};
    for (int r = 0; r < size(); ++r) {
      int64_t theirs = 0;
      memcpy(&theirs, (*all)[static_cast<size_t>(r)].data(), sizeof theirs);
      if (theirs > best.first) best = {theirs, r};
    }
    return best;
  }
  Status agree(const Status& mine) override {
    const std::string text = mine.ok() ? "" : static_cast<char>('A' + mine.code()) + mine.message();
    auto all = meet("agree", Job::Bytes(text.begin(), text.end()));
    if (!all.ok()) return mine.ok() ? all.status() : mine;
    for (const Job::Bytes& each : *all) {
      if (!each.empty())
        return {static_cast<weir_status>(each[0] - 'A'), std::string(each.begin() + 1, each.end())};
    }
    return {};
  }
  Result<std::unique_ptr<Team>> split(int colour, int key) override {
    const std::string name = name_ + "/" + std::to_string(place_) + ":" + std::to_string(colour);
    const int mine[2] = {colour, key};
    auto all = meet("split", Job::Bytes(reinterpret_cast<const char*>(mine),
                                        reinterpret_cast<const char*>(mine) + sizeof mine));
    if (!all.ok()) return all.status();
    std::vector<int> members;
    int rank = 0;
    for (int r = 0; r < size(); ++r) {
      int theirs[2];
      memcpy(theirs, (*all)[static_cast<size_t>(r)].data(), sizeof theirs);
      if (theirs[0] != colour) continue;
      if (r == rank_) rank = static_cast<int>(members.size());
      members.push_back(members_[static_cast<size_t>(r)]);
    }
    if (colour < 0) return std::unique_ptr<Team>();
    return std::unique_ptr<Team>(std::make_unique<ThreadTeam>(job_, name, members, rank));
  }
  const void* mpi_comm() const override { return nullptr; }

  // Everybody's part, or the end of the team: a rank that has failed comes to nothing any more.
  Result<std::vector<Job::Bytes>> meet(const char* what, Job::Bytes mine) {
    if (lost_) return Status{WEIR_E_LOST, "a rank was lost before"};
    const auto key = std::pair(name_, place_);
    if (Status s = come(what, std::move(mine)); !s.ok()) return s;
    const auto all_there = [&] { return job_.meetings[key].came == size(); };
    job_.schedule.wait(job_.limit_s, [&] { return all_there() || is_lost(key.second); });
    if (all_there()) return job_.meetings[key].parts;
    leave();
    return Status{WEIR_E_LOST, std::string(what) + ": a rank did not take part"};
  }
  Status come(const char* what, Job::Bytes mine) {
    if (job_.fails(members_[static_cast<size_t>(rank_)], what)) {
      leave();
      return Job::failure(what);
    }
    Job::Meeting& meeting = job_.meetings[{name_, place_++}];
    meeting.parts.resize(members_.size());
    if (meeting.came++ == 0) meeting.what = what;
    if (meeting.what != what) job_.broken = meeting.what + " met " + what;
    meeting.parts[static_cast<size_t>(rank_)] = std::move(mine);
    job_.schedule.wake();
    return {};
  }
  void leave() {
    lost_ = true;
    const auto at = job_.lost.emplace(name_, place_).first;
    at->second = std::min(at->second, place_);
    job_.schedule.wake();
  }
  bool is_lost(int64_t place) const {
    const auto at = job_.lost.find(name_);
    return at != job_.lost.end() && at->second <= place;
  }

  Job& job_;
  std::string name_;
  std::vector<int> members_;
  int rank_;
  int64_t place_ = 0;
  bool lost_ = false;
};

class ThreadWorld : public World {
 public:
  ThreadWorld(Job& job, int rank)
      : job_(job), rank_(rank), sites_(static_cast<size_t>(job.size), Site{0, base::self()}) {
    std::vector<int> all;
    for (int r = 0; r < job.size; ++r) all.push_back(r);
    team_ = std::make_unique<ThreadTeam>(job, "world", all, rank);
  }
  // A rank that has ended comes to nothing.
  ~ThreadWorld() override { team_->leave(); }
  Team& team() override { return *team_; }
  const std::vector<Site>& sites() const override { return sites_; }
  void set_time_limit(double seconds) override { (void)seconds; }
  double time_limit() const override { return job_.limit_s; }
  Status send(int to, std::span<const char> bytes) override {
    if (job_.fails(rank_, "send a message")) return Job::failure("send a message");
    job_.control[static_cast<size_t>(to)].push_back({rank_, {bytes.begin(), bytes.end()}});
    return {};
  }
  Result<std::optional<Message>> receive() override {
    auto& box = job_.control[static_cast<size_t>(rank_)];
    if (box.empty()) return std::optional<Message>();
    if (job_.fails(rank_, "receive a message")) return Job::failure("receive a message");
    Message message = std::move(box.front());
    box.pop_front();
    return std::optional<Message>(std::move(message));
  }
  std::unique_ptr<Flight> flight(int channel) override {
    return std::make_unique<ThreadFlight>(*this, channel);
  }
  std::unique_ptr<Agreement> agreement(Team& team) override {
    return std::make_unique<ThreadAgreement>(static_cast<ThreadTeam&>(team));
  }
  Result<std::unique_ptr<Window>> window(void* memory, int64_t bytes) override {
    const bool failed = job_.fails(rank_, "window");
    const char* own = static_cast<char*>(memory);
    job_.windows[{++windows_, rank_}] = {static_cast<char*>(memory), {own, own + bytes}};
    WEIR_TRY(team_->barrier());  // a call of all ranks, which fails on one
    if (failed) return Job::failure("window");
    return std::unique_ptr<Window>(std::make_unique<ThreadWindow>(*this, windows_));
  }
  Result<bool> fetches_progress() override { return true; }

 private:
  class NumberedWindow : public Window {
   public:
    explicit NumberedWindow(int64_t number) : number_(number) {}
    int64_t number_;
  };

  class ThreadFlight : public Flight {
   public:
    ThreadFlight(ThreadWorld& world, int channel) : world_(world), channel_(channel) {
      world_.flights_.push_back(this);
    }
    ~ThreadFlight() override { std::erase(world_.flights_, this); }
    Status send(int to, const void* data, int64_t bytes) override {
      if (world_.job_.fails(world_.rank_, "send")) return Job::failure("send");
      const Job::Channel channel{world_.rank_, to, channel_};
      const char* from = static_cast<const char*>(data);
      world_.job_.pieces[channel].emplace_back(from, from + bytes);
      world_.job_.match(channel);
      sending_ = true;
      return {};
    }
    Status receive(int from, void* data, int64_t bytes) override {
      if (world_.job_.fails(world_.rank_, "receive")) return Job::failure("receive");
      const Job::Channel channel{from, world_.rank_, channel_};
      receives_.push_back(std::make_shared<bool>(false));
      world_.job_.posted[channel].push_back({static_cast<char*>(data), bytes, receives_.back()});
      world_.job_.match(channel);
      return {};
    }
    Status fetch(Window& window, int from, int64_t offset, int64_t bytes, void* data) override {
      if (world_.job_.fails(world_.rank_, "fetch")) return Job::failure("fetch");
      const Job::Memory& memory =
          world_.job_.windows[{static_cast<NumberedWindow&>(window).number_, from}];
      fetches_.push_back({memory.public_copy.data() + offset, static_cast<char*>(data), bytes});
      return {};
    }
    // A fetch is not there before the second look, and nothing sent has left.
    Result<bool> finished() override {
      if (!idle() && looks_++ == 0)
        return world_.job_.fails(world_.rank_, "finish") ? Result<bool>(Job::failure("finish"))
                                                         : Result<bool>(false);
      end_fetches();
      sending_ = false;
      std::erase_if(receives_, [](const std::shared_ptr<bool>& done) { return *done; });
      return idle();
    }
    bool idle() const override { return fetches_.empty() && receives_.empty() && !sending_; }
    void end_fetches() {
      for (const Fetch& f : fetches_) memcpy(f.to, f.from, static_cast<size_t>(f.bytes));
      fetches_.clear();
    }

   private:
    struct Fetch {
      const char* from;
      char* to;
      int64_t bytes;
    };
    ThreadWorld& world_;
    int channel_, looks_ = 0;
    bool sending_ = false;
    std::vector<std::shared_ptr<bool>> receives_;
    std::vector<Fetch> fetches_;
  };

  class ThreadWindow : public NumberedWindow {
   public:
    ThreadWindow(ThreadWorld& world, int64_t number) : NumberedWindow(number), world_(world) {}
    // As MPI_Win_free: what this rank fetches has ended, and all are there.
    void release() override {
      {
        for (ThreadFlight* flight : world_.flights_) flight->end_fetches();
      }
      (void)world_.team_->barrier();
    }
    Status sync() override {
      if (world_.job_.fails(world_.rank_, "sync")) return Job::failure("sync");
      Job::Memory& memory = world_.job_.windows[{number_, world_.rank_}];
      std::copy_n(memory.own, memory.public_copy.size(), memory.public_copy.data());
      return {};
    }
    const char* memory_model() const override { return "separate"; }
    ThreadWorld& world_;
  };

  class ThreadAgreement : public Agreement {
   public:
    explicit ThreadAgreement(ThreadTeam& team) : team_(team) {}
    Status start(int64_t value, int64_t place) override {
      if (team_.lost_) return {WEIR_E_LOST, "a rank was lost before"};
      const int64_t mine[2] = {value, place};
      at_ = team_.place_;
      return team_.come("agreement", Job::Bytes(reinterpret_cast<const char*>(mine),
                                                reinterpret_cast<const char*>(mine) + sizeof mine));
    }
    Result<std::optional<Outcome>> poll() override {
      const Job::Meeting& meeting = team_.job_.meetings[{team_.name_, at_}];
      if (meeting.came < team_.size()) return std::optional<Outcome>();
      if (team_.job_.fails(team_.members_[static_cast<size_t>(team_.rank_)], "end an agreement"))
        return Job::failure("end an agreement");
      Outcome outcome{INT64_MIN, true};
      int64_t first = 0;
      for (size_t r = 0; r < meeting.parts.size(); ++r) {
        int64_t theirs[2];
        memcpy(theirs, meeting.parts[r].data(), sizeof theirs);
        if (r == 0) first = theirs[1];
        outcome.greatest = std::max(outcome.greatest, theirs[0]);
        outcome.same_place = outcome.same_place && theirs[1] == first;
      }
      return std::optional<Outcome>(outcome);
    }

   private:
    ThreadTeam& team_;
    int64_t at_ = 0;
  };

  Job& job_;
  int rank_;
  int64_t windows_ = 0;
  std::vector<Site> sites_;
  std::vector<ThreadFlight*> flights_;
  std::unique_ptr<ThreadTeam> team_;
};

}  // namespace weir::output
