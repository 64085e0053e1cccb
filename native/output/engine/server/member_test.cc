// SPDX-License-Identifier: Apache-2.0
// The messages of control of a whole job in one process: 10,000 clients, a group of 64 members,
// counted; and the order in which things happen.
#include <gtest/gtest.h>

#include <deque>
#include <numeric>

#include "output/engine/server/member.h"

namespace weir::output {
namespace {

struct Post {
  std::vector<std::deque<Message>> to;
  int64_t sent = 0;
};

// A rank whose messages go through Post. Nothing else of a world is used here.
class PostWorld : public World, public Team {
 public:
  PostWorld(Post& post, const std::vector<Site>& sites, int rank)
      : post_(post), sites_(sites), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(sites_.size()); }
  Team& team() override { return *this; }
  const std::vector<Site>& sites() const override { return sites_; }
  void set_time_limit(double) override {}
  double time_limit() const override { return 300; }
  Status send(int to, std::span<const char> bytes) override {
    ++post_.sent;
    post_.to[static_cast<size_t>(to)].push_back({rank_, {bytes.begin(), bytes.end()}});
    return {};
  }
  Result<std::optional<Message>> receive() override { return std::optional<Message>(); }
  std::unique_ptr<Flight> flight(int) override { return nullptr; }
  std::unique_ptr<Agreement> agreement(Team&) override { return nullptr; }
  Result<std::unique_ptr<Window>> window(void*, int64_t) override { return kNone; }
  Result<bool> fetches_progress() override { return kNone; }
  Status barrier() override { return kNone; }
  Status broadcast(std::vector<char>&, int) override { return kNone; }
  Result<std::vector<std::vector<char>>> gather(std::span<const char>, int) override {
    return kNone;
  }
  Result<std::vector<std::vector<char>>> exchange(std::vector<std::vector<char>>) override {
    return kNone;
  }
  Result<std::pair<int64_t, int>> maximum(int64_t) override { return kNone; }
  Status agree(const Status&) override { return kNone; }
  Result<std::unique_ptr<Team>> split(int, int) override { return kNone; }
  const void* mpi_comm() const override { return nullptr; }

 private:
  const Status kNone{WEIR_E_INTERNAL, "not part of this test"};
  Post& post_;
  const std::vector<Site>& sites_;
  int rank_;
};

class RecordedWork : public Work {
 public:
  RecordedWork(bool owns, std::vector<std::string>& log) : owns_(owns), log_(log) {}
  Status define() override { return {}; }
  bool owns() const override { return owns_; }
  Status write(const Frame& frame, const Status& refused) override {
    log_.push_back((refused.ok() ? "write " : "refuse ") + std::to_string(frame.number));
    return refused;
  }
  Status remark() override { return std::exchange(remark_, {}); }
  Status close(const Status&) override {
    log_.push_back("close");
    return {};
  }
  std::string name(const Frame& frame) const override {
    return "frame " + std::to_string(frame.number);
  }
  Status refusal(const Frame& frame, const MissingField& missing) const override {
    return {WEIR_E_MISSING, name(frame) + ": rank " + std::to_string(missing.rank) + " and " +
                                std::to_string(missing.count - 1) + " more"};
  }

 private:
  bool owns_;
  std::vector<std::string>& log_;

 public:
  Status remark_;
};

// Clients first, then one group of members.
struct Job {
  Job(int clients, int members, int owners) {
    sites.resize(static_cast<size_t>(clients + members));
    for (int r = 0; r < clients + members; ++r)
      sites[static_cast<size_t>(r)].node = r;  // so nobody looks for processes
    post.to.resize(sites.size());
    topology.clients.resize(static_cast<size_t>(clients));
    std::iota(topology.clients.begin(), topology.clients.end(), 0);
    topology.groups.emplace_back();
    topology.owners = {owners};
    logs.resize(static_cast<size_t>(members));
    for (int t = 0; t < members; ++t) topology.groups[0].push_back(clients + t);
    for (int t = 0; t < members; ++t) {
      worlds.push_back(std::make_unique<PostWorld>(post, sites, clients + t));
      works.push_back(std::make_unique<RecordedWork>(t < owners, logs[static_cast<size_t>(t)]));
      all.push_back(std::make_unique<GroupMember>(*worlds.back(), topology, *works.back()));
    }
    for (int t = 0; t < members; ++t)
      all[static_cast<size_t>(t)]->on_message({0, Note{NoteKind::kDefine, 0, {}, {}, {}}.encode()});
  }
  void say(int client, NoteKind kind, int64_t number, const MissingField& missing = {}) {
    Note note{kind, 0, {}, missing, {}};
    note.frame.number = number;
    ++post.sent;
    post.to[static_cast<size_t>(topology.gate(0, client))].push_back({client, note.encode()});
  }
  void deliver() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t t = 0; t < all.size(); ++t) {
        std::deque<Message>& box = post.to[topology.clients.size() + t];
        for (; !box.empty(); moved = true) {
          const Message message = box.front();
          box.pop_front();
          all[t]->on_message(message);
        }
      }
    }
  }
  // What a client has been notified of since the last time.
  std::vector<Note> notes_of(int client) {
    std::vector<Note> notes;
    for (const Message& m : post.to[static_cast<size_t>(client)])
      notes.push_back(*Note::decode(m.bytes));
    post.to[static_cast<size_t>(client)].clear();
    return notes;
  }

  Post post;
  std::vector<Site> sites;
  Topology topology;
  std::vector<std::vector<std::string>> logs;
  std::vector<std::unique_ptr<PostWorld>> worlds;
  std::vector<std::unique_ptr<RecordedWork>> works;
  std::vector<std::unique_ptr<GroupMember>> all;
};

TEST(GroupMember,
     ten_thousand_clients_and_sixty_four_ranks_need_messages_for_their_sum_not_their_product) {
  for (int owners : {1, 64}) {
    Job job(10'000, 64, owners);
    const int64_t before = job.post.sent;
    for (int c = 0; c < 10'000; ++c) job.say(c, NoteKind::kFrame, 0);
    job.deliver();
    // There: clients, 63 ready, 63 go. Back: clients, and one for each member that only forwards.
    EXPECT_EQ(job.post.sent - before, 10'000 + 63 + 63 + 10'000 + (64 - owners));
    for (int t = 0; t < owners; ++t)
      EXPECT_EQ(job.logs[static_cast<size_t>(t)], std::vector<std::string>{"write 0"});
    for (int c : {0, 63, 64, 9'999}) {
      const std::vector<Note> notes = job.notes_of(c);
      ASSERT_EQ(notes.size(), 1u);
      EXPECT_EQ(notes[0].kind, NoteKind::kRelease);
    }
  }
}

TEST(GroupMember, writes_frames_in_the_order_in_which_they_are_complete_on_all_ranks) {
  Job job(5, 2, 2);
  for (int64_t frame : {0, 1}) {
    for (int c = 4; c > 0; --c) job.say(c, NoteKind::kFrame, frame);
  }
  job.deliver();
  EXPECT_TRUE(job.logs[0].empty());
  job.say(0, NoteKind::kFrame, 0);
  job.deliver();
  job.say(0, NoteKind::kFrame, 1);
  for (int c = 0; c < 5; ++c) job.say(c, NoteKind::kShutdown, 0);
  job.deliver();
  const std::vector<std::string> expected = {"write 0", "write 1", "close"};
  EXPECT_EQ(job.logs[0], expected);
  EXPECT_EQ(job.logs[1], expected);
  EXPECT_TRUE(job.all[0]->ended() && job.all[1]->ended());
}

TEST(GroupMember, a_frame_that_ranks_have_not_completed_is_refused_and_all_learn_who) {
  Job job(5, 2, 1);
  for (int c = 0; c < 5; ++c)
    job.say(c, NoteKind::kFrame, 0, c == 3 || c == 4 ? MissingField{1, c, 1} : MissingField{});
  job.deliver();
  EXPECT_EQ(job.logs[0], std::vector<std::string>{"refuse 0"});
  for (int c = 0; c < 5; ++c) {
    const std::vector<Note> notes = job.notes_of(c);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].status.code(), WEIR_E_MISSING);
    EXPECT_EQ(notes[0].status.message(), "frame 0: rank 3 and 1 more");
  }
}

TEST(GroupMember, what_is_reported_of_a_written_frame_reaches_the_clients_of_all_ranks_once) {
  Job job(5, 2, 1);
  job.works[0]->remark_ = {WEIR_E_LOST, "means are short"};
  for (int64_t number : {0, 1}) {
    for (int c = 0; c < 5; ++c) job.say(c, NoteKind::kFrame, number);
  }
  job.deliver();
  for (int c = 0; c < 5; ++c) {
    const std::vector<Note> notes = job.notes_of(c);
    ASSERT_EQ(notes.size(), 2u);
    EXPECT_TRUE(notes[0].in_file && notes[1].in_file);
    EXPECT_EQ(notes[0].status.message(), "means are short");
    EXPECT_TRUE(notes[1].status.ok());
  }
}

TEST(GroupMember, the_rank_that_is_alone_with_its_step_is_named_whoever_was_heard_first) {
  for (int members : {1, 2}) {
    for (int odd : {0, 4}) {
      Job job(7, members, 1);
      for (int c = 0; c < 7; ++c) {
        Note note{NoteKind::kFrame, 0, {}, {}, {}};
        note.frame.step = c == odd ? 4 : 3;
        job.post.to[static_cast<size_t>(job.topology.gate(0, c))].push_back({c, note.encode()});
      }
      job.deliver();
      EXPECT_EQ(job.logs[0], std::vector<std::string>{"refuse 0"});
      const std::vector<Note> notes = job.notes_of(6);
      ASSERT_EQ(notes.size(), 1u);
      EXPECT_EQ(notes[0].status.code(), WEIR_E_ORDER);
      const std::string rank = "rank " + std::to_string(odd) + " of the model is at step 4";
      EXPECT_NE(notes[0].status.message().find(rank), std::string::npos)
          << notes[0].status.message();
    }
  }
}

TEST(GroupMember, a_group_that_was_given_up_ends_without_closing_its_files) {
  Job job(5, 2, 1);
  for (int c = 0; c < 5; ++c) job.say(c, NoteKind::kFrame, 0);
  job.deliver();
  for (int t : {0, 1})
    job.all[static_cast<size_t>(t)]->on_message(
        {0, Note{NoteKind::kGivenUp, 0, {}, {}, {WEIR_E_LOST, "given up"}}.encode()});
  EXPECT_EQ(job.logs[0], std::vector<std::string>{"write 0"});
  for (const auto& member : job.all) {
    EXPECT_TRUE(member->ended());
    EXPECT_EQ(member->broken().code(), WEIR_E_LOST);
  }
}

TEST(GroupMember, a_sign_of_life_of_the_head_reaches_the_clients_of_ranks_that_only_forward) {
  Job job(4, 2, 1);
  job.all[1]->on_message({4, Note{NoteKind::kAlive, 0, {}, {}, {}}.encode()});
  for (int client : {1, 3}) {
    const std::vector<Note> notes = job.notes_of(client);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].kind, NoteKind::kAlive);
  }
}

TEST(GroupMember, a_group_with_more_ranks_than_clients_ends) {
  Job job(1, 3, 3);
  job.say(0, NoteKind::kFrame, 0);
  job.say(0, NoteKind::kShutdown, 0);
  job.deliver();
  for (const auto& member : job.all) EXPECT_TRUE(member->ended());
  const std::vector<Note> notes = job.notes_of(0);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[1].kind, NoteKind::kFinished);
}

}  // namespace
}  // namespace weir::output
