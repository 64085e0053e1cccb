// SPDX-License-Identifier: Apache-2.0
#include "output/engine/server/task.h"

#include <algorithm>

#include "output/engine/alive.h"
#include "output/model/text.h"
#include "output/transport/patience.h"

namespace weir::output {

namespace {

constexpr double kLookEvery_s = 0.5;
constexpr double kAliveEvery_s = 5;

}  // namespace

GroupTask::GroupTask(World& world, const Topology& topology, Work& work) : world_(world), topology_(topology), work_(work) {
  group_ = topology.group_of(world.rank());
  const std::vector<int>& tasks = topology.groups[static_cast<size_t>(group_)];
  task_ = static_cast<int>(std::find(tasks.begin(), tasks.end(), world.rank()) - tasks.begin());
  head_ = tasks[0];
  busy_tasks_ = static_cast<int>(std::min(tasks.size(), topology.clients.size()));
  for (int c = task_; c < static_cast<int>(topology.clients.size()); c += static_cast<int>(tasks.size())) clients_.push_back(c);
}

void GroupTask::hear(const Message& message) {
  last_heard_s_ = now_s();
  Result<Note> note = Note::decode(message.bytes);
  if (!note.ok()) {
    give_up(note.status());
    return;
  }
  const int client = topology_.client_of(message.from);
  switch (note->kind) {
    case NoteKind::kDefine: defined_ = work_.define(); return;
    case NoteKind::kFrame: return hear_frame(client, *note);
    case NoteKind::kReady: return hear_ready(*note);
    case NoteKind::kGo: return write(note->frame, note->status);
    case NoteKind::kDone: return release(note->frame, note->status, note->in_file);
    case NoteKind::kBye: return hear_bye(client, note->status);
    case NoteKind::kAllBye: return hear_all_bye();
    case NoteKind::kClose: return close();
    case NoteKind::kClosed: return farewell(note->status);
    default: return;
  }
}

Lack GroupTask::both(const Lack& a, const Lack& b) {
  if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
  Lack sum = a.column < b.column || (a.column == b.column && a.rank < b.rank) ? a : b;
  sum.count = a.count + b.count;
  return sum;
}

void GroupTask::hear_frame(int client, const Note& note) {
  if (!broken_.ok()) {
    (void)world_.send(topology_.clients[static_cast<size_t>(client)], Note{NoteKind::kRelease, group_, note.frame, {}, broken_}.encode());
    return;
  }
  Heard& h = heard_[{note.frame.stream, note.frame.number}];
  if (h.since_s == 0) h.since_s = now_s();
  if (h.differs.ok() && !h.who.empty()) {
    h.differs = compare(h, note.frame, "rank " + std::to_string(topology_.clients[static_cast<size_t>(client)]) + " of the model is");
  }
  h.frame = note.frame;
  h.frame.written = std::max(h.frame.written, note.frame.written);
  h.lack = both(h.lack, note.lack);
  h.who.insert(client);
  if (h.who.size() == clients_.size()) to_head({NoteKind::kReady, group_, h.frame, h.lack, h.differs});
}

Status GroupTask::compare(const Heard& before, const Frame& frame, const std::string& who) const {
  const Frame& b = before.frame;
  if (b.time_s == frame.time_s && b.step == frame.step && b.due == frame.due) return {};
  return {WEIR_E_ORDER, work_.name(frame) + ": " + who + " at step " + std::to_string(frame.step) + " (" + number_text(frame.time_s) +
                            " s) where others are at step " + std::to_string(b.step) + " (" + number_text(b.time_s) +
                            " s), but all must call weir_step with the same times; the frame is not written"};
}

void GroupTask::hear_ready(const Note& note) {
  Heard& h = heard_[{note.frame.stream, note.frame.number}];
  if (h.differs.ok()) h.differs = note.status;
  if (h.differs.ok() && h.tasks > 0) h.differs = compare(h, note.frame, "ranks of the model are");
  h.frame = note.frame;
  h.lack = h.tasks == 0 ? note.lack : both(h.lack, note.lack);
  if (++h.tasks < busy_tasks_) return;
  const Status refused = !h.differs.ok() || h.lack.count == 0 ? h.differs : work_.refusal(h.frame, h.lack);
  const Frame frame = h.frame;
  to_tasks({NoteKind::kGo, group_, frame, {}, refused}, true);
  write(frame, refused);
}

void GroupTask::write(const Frame& frame, const Status& refused) {
  if (!work_.owns()) return;
  last_alive_s_ = now_s();
  Status s = work_.write(frame, refused);
  if (s.code() == WEIR_E_LOST && broken_.ok()) broken_ = s;
  const bool in_file = s.ok();
  if (Status remark = work_.remark(); in_file) s = std::move(remark);
  if (task_ == 0) to_tasks({NoteKind::kDone, group_, frame, {}, s, in_file}, false);
  release(frame, s, in_file);
}

void GroupTask::release(const Frame& frame, const Status& status, bool in_file) {
  heard_.erase({frame.stream, frame.number});
  to_clients({NoteKind::kRelease, group_, frame, {}, status, in_file});
}

void GroupTask::hear_bye(int client, const Status& incomplete) {
  if (!incomplete.ok()) give_up(incomplete);
  if (!byes_.insert(client).second) return;
  if (byes_.size() == clients_.size()) to_head({NoteKind::kAllBye, group_, {}, {}, {}});
}

void GroupTask::hear_all_bye() {
  if (++all_byes_ < busy_tasks_) return;
  to_tasks({NoteKind::kClose, group_, {}, {}, {}}, true);
  close();
}

void GroupTask::close() {
  if (!defined_) return farewell({});
  if (!work_.owns()) return;  // the head will say when the files are closed
  Status s = work_.close(broken_);
  if (task_ == 0) to_tasks({NoteKind::kClosed, group_, {}, {}, s}, false);
  farewell(s);
}

void GroupTask::farewell(const Status& status) {
  to_clients({NoteKind::kFarewell, group_, {}, {}, status});
  ended_ = true;
}

void GroupTask::to_tasks(const Note& note, bool owners_too) {
  const std::vector<int>& tasks = topology_.groups[static_cast<size_t>(group_)];
  const std::vector<char> bytes = note.encode();
  const int owners = topology_.owners[static_cast<size_t>(group_)];
  for (int t = owners_too ? 1 : owners; t < static_cast<int>(tasks.size()); ++t) {
    if (Status sent = world_.send(tasks[static_cast<size_t>(t)], bytes); !sent.ok()) give_up(sent);
  }
}

void GroupTask::to_head(const Note& note) {
  if (task_ != 0) {
    if (Status sent = world_.send(head_, note.encode()); !sent.ok()) give_up(sent);
  } else if (note.kind == NoteKind::kReady) {
    hear_ready(note);
  } else {
    hear_all_bye();
  }
}

void GroupTask::to_clients(const Note& note) {
  const std::vector<char> bytes = note.encode();
  for (int c : clients_) {
    if (Status sent = world_.send(topology_.clients[static_cast<size_t>(c)], bytes); !sent.ok() && broken_.ok()) broken_ = sent;
  }
  last_alive_s_ = now_s();
}

void GroupTask::still_alive() {
  if (now_s() - last_alive_s_ > std::min(kAliveEvery_s, world_.time_limit() / 8)) to_clients({NoteKind::kAlive, group_, {}, {}, {}});
}

// A client that is gone, or that has left a frame incomplete for too long, ends the group's work: what is written stays readable, and the
// other clients are told.
void GroupTask::look_after_clients() {
  const double now = now_s();
  if (now - last_look_s_ < kLookEvery_s) return;
  last_look_s_ = now;
  if (!broken_.ok() && now - last_heard_s_ > world_.time_limit()) {
    for (int c : clients_) hear_bye(c, {});
    return;
  }
  for (int c : clients_) {
    const int rank = topology_.clients[static_cast<size_t>(c)];
    if (byes_.count(c) != 0 || !is_gone(world_, rank)) continue;
    give_up({WEIR_E_LOST, "rank " + std::to_string(rank) + " of the model is gone; what it had not handed over is lost"});
    hear_bye(c, {});
    return;
  }
  for (const auto& [key, h] : heard_) {
    if (h.who.empty() || h.who.size() == clients_.size() || now - h.since_s < world_.time_limit()) continue;
    std::string silent;
    for (int c : clients_) {
      if (h.who.count(c) == 0) silent += (silent.empty() ? "" : ", ") + std::to_string(topology_.clients[static_cast<size_t>(c)]);
    }
    give_up({WEIR_E_LOST, work_.name(h.frame) + ": ranks that did not end the step within " +
                              std::to_string(static_cast<int>(world_.time_limit())) + " s (time_limit_s): " + silent});
    return;
  }
}

void GroupTask::give_up(const Status& why) {
  if (!broken_.ok()) return;
  broken_ = why;
  for (const auto& [key, h] : std::map<Key, Heard>(std::move(heard_))) to_clients({NoteKind::kRelease, group_, h.frame, {}, why});
  heard_.clear();
}

}  // namespace weir::output
