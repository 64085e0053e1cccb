// SPDX-License-Identifier: Apache-2.0
#include "output/engine/server/server.h"

#include <algorithm>
#include <map>
#include <set>

#include "output/engine/alive.h"
#include "output/engine/writer.h"
#include "output/transport/patience.h"

namespace weir::output {

namespace {

constexpr double kLookEvery_s = 0.5;
constexpr double kAliveEvery_s = 5;

class Server {
 public:
  Server(World& world, const Settings& settings, const Topology& topology);
  Status run();

 private:
  // What has been heard of a frame: by a task from its clients, by the head from the tasks.
  struct Heard {
    Frame frame;
    int clients = 0, tasks = 0;
    Lack lack;
    double since_s = 0;
    std::set<int> who;  // clients that have announced it
  };
  using Key = std::pair<int, int64_t>;

  void hear(const Message& message);
  void hear_frame(int client, const Note& note);
  void hear_ready(const Note& note);
  void hear_bye(int client);
  void hear_all_bye();
  void define();
  void write(const Frame& frame, const Status& refused);
  void close();
  void release(const Frame& frame, const Status& status);
  void farewell(const Status& status);
  void to_tasks(const Note& note, bool owners_too);
  void to_head(const Note& note);
  void to_clients(const Note& note);
  void still_alive();
  void look_after_clients();
  void give_up(const Status& why);
  Status refusal(const Frame& frame, const Lack& lack) const;
  static Lack both(const Lack& a, const Lack& b);

  World& world_;
  Setup setup_;
  int group_, task_, head_;
  int busy_tasks_ = 0;         // tasks of the group that have clients
  std::vector<int> clients_;   // mine, by number
  std::set<int> byes_;
  int all_byes_ = 0;
  std::unique_ptr<Writer> writer_;
  std::map<Key, Heard> heard_;
  Status broken_;              // no frame can be completed any more
  Status first_error_;
  bool defined_ = false, ended_ = false;
  double last_alive_s_ = 0, last_look_s_ = 0, last_heard_s_ = 0;
};

Server::Server(World& world, const Settings& settings, const Topology& topology) : world_(world) {
  setup_.settings = settings;
  setup_.topology = topology;
  group_ = topology.group_of(world.rank());
  const std::vector<int>& tasks = topology.groups[static_cast<size_t>(group_)];
  task_ = static_cast<int>(std::find(tasks.begin(), tasks.end(), world.rank()) - tasks.begin());
  head_ = tasks[0];
  busy_tasks_ = static_cast<int>(std::min(tasks.size(), topology.clients.size()));
  for (int c = task_; c < static_cast<int>(topology.clients.size()); c += static_cast<int>(tasks.size())) clients_.push_back(c);
  world.set_time_limit(settings.time_limit_s);
}

Status Server::run() {
  Patience patience(1e30);
  while (!ended_) {
    Result<std::optional<Message>> message = world_.receive();
    if (!message.ok()) return message.status();
    if (message->has_value()) {
      hear(**message);
      patience.restart();
    } else {
      look_after_clients();
      patience.wait();
    }
  }
  if (broken_.ok()) release_window(world_, &setup_);
  return first_error_;
}

void Server::hear(const Message& message) {
  last_heard_s_ = now_s();
  Result<Note> note = Note::decode(message.bytes);
  if (!note.ok()) {
    give_up(note.status());
    return;
  }
  const int client = setup_.topology.client_of(message.from);
  switch (note->kind) {
    case NoteKind::kDefine: return define();
    case NoteKind::kFrame: return hear_frame(client, *note);
    case NoteKind::kReady: return hear_ready(*note);
    case NoteKind::kGo: return write(note->frame, note->status);
    case NoteKind::kDone: return release(note->frame, note->status);
    case NoteKind::kBye: return hear_bye(client);
    case NoteKind::kAllBye: return hear_all_bye();
    case NoteKind::kClose: return close();
    case NoteKind::kClosed: return farewell(note->status);
    default: return;
  }
}

void Server::define() {
  Status made = agree_setup(world_, &setup_);
  if (!made.ok()) return;  // the model has the same error
  Status ready;
  if (setup_.owner >= 0) {
    writer_ = std::make_unique<Writer>(world_, setup_);
    writer_->on_pause([this] { still_alive(); });
    ready = writer_->prepare();
  }
  first_error_ = world_.team().agree(ready);
  defined_ = first_error_.ok();
  if (!defined_) writer_.reset();
}

Lack Server::both(const Lack& a, const Lack& b) {
  if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
  Lack sum = a.column < b.column || (a.column == b.column && a.rank < b.rank) ? a : b;
  sum.count = a.count + b.count;
  return sum;
}

void Server::hear_frame(int client, const Note& note) {
  if (!broken_.ok()) {
    (void)world_.send(setup_.topology.clients[static_cast<size_t>(client)], Note{NoteKind::kRelease, group_, note.frame, {}, broken_}.encode());
    return;
  }
  Heard& h = heard_[{note.frame.stream, note.frame.number}];
  if (h.since_s == 0) h.since_s = now_s();
  h.frame = note.frame;
  h.frame.written = std::max(h.frame.written, note.frame.written);
  h.lack = both(h.lack, note.lack);
  h.who.insert(client);
  if (h.who.size() == clients_.size()) to_head({NoteKind::kReady, group_, h.frame, h.lack, {}});
}

void Server::hear_ready(const Note& note) {
  if (!note.status.ok()) return write(note.frame, note.status);
  Heard& h = heard_[{note.frame.stream, note.frame.number}];
  h.frame = note.frame;
  h.lack = h.tasks == 0 ? note.lack : both(h.lack, note.lack);
  if (++h.tasks < busy_tasks_) return;
  const Status refused = refusal(h.frame, h.lack);
  const Frame frame = h.frame;
  to_tasks({NoteKind::kGo, group_, frame, {}, refused}, true);
  write(frame, refused);
}

Status Server::refusal(const Frame& frame, const Lack& lack) const {
  if (lack.count == 0) return {};
  const Column& column = setup_.layout.streams[static_cast<size_t>(frame.stream)].fields.columns[static_cast<size_t>(lack.column)];
  return {WEIR_E_MISSING, "stream '" + setup_.catalogue.streams[static_cast<size_t>(frame.stream)].name + "', step " + std::to_string(frame.step) +
                              ": field '" + setup_.catalogue.fields[static_cast<size_t>(column.field)].name + "' was not put by " +
                              std::to_string(lack.count) + " ranks of the model (the first: rank " + std::to_string(lack.rank) +
                              "); the frame is not written"};
}

void Server::write(const Frame& frame, const Status& refused) {
  if (writer_ == nullptr || setup_.owner < 0) return;
  last_alive_s_ = now_s();
  Status s = writer_->write(frame, refused);
  if (first_error_.ok()) first_error_ = s;
  if (s.code() == WEIR_E_LOST && broken_.ok()) broken_ = s;
  if (task_ == 0) to_tasks({NoteKind::kDone, group_, frame, {}, s}, false);
  release(frame, s);
}

void Server::release(const Frame& frame, const Status& status) {
  heard_.erase({frame.stream, frame.number});
  to_clients({NoteKind::kRelease, group_, frame, {}, status});
}

void Server::hear_bye(int client) {
  if (!byes_.insert(client).second) return;
  if (byes_.size() == clients_.size()) to_head({NoteKind::kAllBye, group_, {}, {}, {}});
}

void Server::hear_all_bye() {
  if (++all_byes_ < busy_tasks_) return;
  to_tasks({NoteKind::kClose, group_, {}, {}, {}}, true);
  close();
}

void Server::close() {
  if (!defined_) return farewell({});
  if (writer_ == nullptr) return;  // the head will say when the files are closed
  Status s = writer_->close_all(broken_);
  if (first_error_.ok()) first_error_ = s;
  if (task_ == 0) to_tasks({NoteKind::kClosed, group_, {}, {}, s}, false);
  farewell(s);
}

void Server::farewell(const Status& status) {
  to_clients({NoteKind::kFarewell, group_, {}, {}, status});
  ended_ = true;
}

void Server::to_tasks(const Note& note, bool owners_too) {
  const std::vector<int>& tasks = setup_.topology.groups[static_cast<size_t>(group_)];
  const std::vector<char> bytes = note.encode();
  const int owners = setup_.topology.owners[static_cast<size_t>(group_)];
  for (int t = owners_too ? 1 : owners; t < static_cast<int>(tasks.size()); ++t) {
    if (Status sent = world_.send(tasks[static_cast<size_t>(t)], bytes); !sent.ok()) give_up(sent);
  }
}

void Server::to_head(const Note& note) {
  if (task_ != 0) {
    if (Status sent = world_.send(head_, note.encode()); !sent.ok()) give_up(sent);
  } else if (note.kind == NoteKind::kReady) {
    hear_ready(note);
  } else {
    hear_all_bye();
  }
}

void Server::to_clients(const Note& note) {
  const std::vector<char> bytes = note.encode();
  for (int c : clients_) {
    if (Status sent = world_.send(setup_.topology.clients[static_cast<size_t>(c)], bytes); !sent.ok() && first_error_.ok()) first_error_ = sent;
  }
  last_alive_s_ = now_s();
}

void Server::still_alive() {
  if (now_s() - last_alive_s_ > std::min(kAliveEvery_s, world_.time_limit() / 8)) to_clients({NoteKind::kAlive, group_, {}, {}, {}});
}

// A client that is gone, or that has left a frame incomplete for too long, ends the group's work: what is written stays readable, and the
// other clients are told.
void Server::look_after_clients() {
  const double now = now_s();
  if (now - last_look_s_ < kLookEvery_s) return;
  last_look_s_ = now;
  if (!broken_.ok() && now - last_heard_s_ > world_.time_limit()) {
    for (int c : clients_) hear_bye(c);
    return;
  }
  for (int c : clients_) {
    const int rank = setup_.topology.clients[static_cast<size_t>(c)];
    if (byes_.count(c) != 0 || !is_gone(world_, rank)) continue;
    give_up({WEIR_E_LOST, "rank " + std::to_string(rank) + " of the model is gone; what it had not handed over is lost"});
    hear_bye(c);
    return;
  }
  for (const auto& [key, h] : heard_) {
    if (h.who.empty() || h.who.size() == clients_.size() || now - h.since_s < world_.time_limit()) continue;
    std::string silent;
    for (int c : clients_) {
      if (h.who.count(c) == 0) silent += (silent.empty() ? "" : ", ") + std::to_string(setup_.topology.clients[static_cast<size_t>(c)]);
    }
    give_up({WEIR_E_LOST, "stream '" + setup_.catalogue.streams[static_cast<size_t>(h.frame.stream)].name + "', step " +
                              std::to_string(h.frame.step) + ": ranks that did not end the step within " +
                              std::to_string(static_cast<int>(world_.time_limit())) + " s (time_limit_s): " + silent});
    return;
  }
}

void Server::give_up(const Status& why) {
  if (!broken_.ok()) return;
  broken_ = why;
  if (first_error_.ok()) first_error_ = why;
  for (const auto& [key, h] : std::map<Key, Heard>(std::move(heard_))) to_clients({NoteKind::kRelease, group_, h.frame, {}, why});
  heard_.clear();
}

}  // namespace

Status serve(World& world, const Settings& settings, const Topology& topology) { return Server(world, settings, topology).run(); }

}  // namespace weir::output
