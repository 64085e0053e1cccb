// SPDX-License-Identifier: Apache-2.0
// A member of a group of servers, as far as messages go: it hears clients and members, and says
// when frames are to be written and released. What is done with frames is Work's.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "output/engine/note.h"
#include "output/engine/topology.h"

namespace weir::output {

class Work {
 public:
  virtual ~Work() = default;
  // Definitions have ended: take part in the agreement with the model's ranks. After an error there
  // is nothing to write.
  virtual Status define() = 0;
  // Whether this member writes.
  virtual bool owns() const = 0;
  virtual Status write(const Frame& frame, const Status& refused) = 0;
  // What the model is to be notified of a frame that was written all the same; once.
  virtual Status remark() = 0;
  virtual Status close(const Status& incomplete) = 0;
  // "stream 'history', step 3".
  virtual std::string name(const Frame& frame) const = 0;
  // Why a frame that lacks something is not written.
  virtual Status refusal(const Frame& frame, const MissingField& missing) const = 0;
};

class GroupMember {
 public:
  GroupMember(World& world, const Topology& topology, Work& work);

  void on_message(const Message& message);
  // When there is nothing to hear: is everybody there?
  void look_after_clients();
  // During long work.
  void still_alive();
  // Nothing can be heard any more.
  void fail(const Status& why);
  bool ended() const { return ended_; }
  // Why no frame can be completed any more. What became of single frames and files is reported to
  // the model alone.
  const Status& broken() const { return broken_; }
  // Whether the model's ranks end the world now: see Note::apart.
  bool apart() const { return apart_; }

 private:
  // A step that clients mean by a frame: how many, and the first of them.
  struct Place {
    Frame frame;
    size_t clients = 0;
    int rank = -1;
  };
  // What has been heard of a frame: by a member from its clients, by the head from the members.
  struct Heard {
    Frame frame;
    int members = 0;
    MissingField missing;
    double since_s = 0;
    std::set<int> who;  // clients that have announced it
    std::vector<Place> places;  // of a member's clients; one: all mean the same step
    std::vector<Place> heads;   // at the head: of the members
    Status differs;             // why it cannot be written, as the first that knows has it
  };
  using Key = std::pair<int, int64_t>;

  void define();
  void on_frame(int client, const Note& note);
  void on_ready(int member, const Note& note);
  void on_shutdown(int client, const Status& incomplete);
  void on_all_shutdown();
  // A note of the group's end, with what this member knows of the world's.
  Note ending(NoteKind kind) const { return {kind, group_, {}, {}, {}, false, false, apart_}; }
  void write(const Frame& frame, const Status& refused);
  void close();
  void release(const Frame& frame, const Status& status, bool in_file);
  void send_finished(const Status& status);
  void end_given_up(const Status& why);
  void to_members(const Note& note, bool owners_too);
  void to_head(const Note& note);
  void to_clients(const Note& note);
  void end_alone();
  void give_up(const Status& why);
  static MissingField both(const MissingField& a, const MissingField& b);
  static Frame with_most_written(const Frame& frame, const Frame& other);
  static void add_place(std::vector<Place>* places, const Frame& frame, size_t clients, int rank);
  // Whether clients mean different steps: who is alone with his is named.
  Status compare(const std::vector<Place>& places) const;

  World& world_;
  const Topology& topology_;
  Work& work_;
  int group_, member_, head_;
  int busy_members_ = 0;         // members of the group that have clients
  std::vector<int> clients_;   // mine, by number
  std::set<int> shutdowns_;
  int all_shutdowns_ = 0;
  std::map<Key, Heard> heard_;
  Status broken_;              // no frame can be completed any more
  bool defined_ = false, ended_ = false, apart_ = false;
  Status undefined_;           // why not; the model's ranks have the same error
  double last_alive_s_ = 0, last_look_s_ = 0, last_heard_s_ = 0;
};

}  // namespace weir::output
