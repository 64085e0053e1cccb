// SPDX-License-Identifier: Apache-2.0
#include "output/engine/server/member.h"

#include <algorithm>

#include "output/engine/alive.h"
#include "output/model/text.h"
#include "output/transport/patience.h"

namespace weir::output {

namespace {

constexpr double kLookEvery_s = 0.5;
constexpr double kAliveEvery_s = 5;

}  // namespace

GroupMember::GroupMember(World& world, const Topology& topology, Work& work)
    : world_(world), topology_(topology), work_(work) {
  group_ = topology.group_of(world.rank());
  const std::vector<int>& members = topology.groups[static_cast<size_t>(group_)];
  member_ = topology.member_of(world.rank());
  head_ = members[0];
  busy_members_ = static_cast<int>(std::min(members.size(), topology.clients.size()));
  for (int c = member_; c < static_cast<int>(topology.clients.size());
       c += static_cast<int>(members.size()))
    clients_.push_back(c);
}

void GroupMember::on_message(const Message& message) {
  last_heard_s_ = now_s();
  Result<Note> note = Note::decode(message.bytes);
  if (!note.ok()) {
    give_up(note.status());
    return;
  }
  const int client = topology_.client_of(message.from);
  apart_ = apart_ || note->apart;
  switch (note->kind) {
    case NoteKind::kDefine: return define();
    case NoteKind::kFrame: return on_frame(client, *note);
    case NoteKind::kReady: return on_ready(topology_.member_of(message.from), *note);
    case NoteKind::kGo: return write(note->frame, note->status);
    case NoteKind::kDone: return release(note->frame, note->status, note->in_file);
    case NoteKind::kShutdown: return on_shutdown(client, note->status);
    case NoteKind::kAllShutdown: return on_all_shutdown();
    case NoteKind::kClose: return close();
    case NoteKind::kClosed: return send_finished(note->status);
    case NoteKind::kAlive: return to_clients(*note);
    case NoteKind::kGivenUp: return end_given_up(note->status);
    default: return;
  }
}

MissingField GroupMember::both(const MissingField& a, const MissingField& b) {
  if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
  MissingField sum = a.column < b.column || (a.column == b.column && a.rank < b.rank) ? a : b;
  sum.count = a.count + b.count;
  return sum;
}

// Not all clients have been notified of the same when a group is lost.
Frame GroupMember::with_most_written(const Frame& frame, const Frame& other) {
  Frame most = frame;
  if (other.written > most.written) most.written = other.written, most.source = other.source;
  return most;
}

void GroupMember::define() {
  undefined_ = work_.define();
  defined_ = undefined_.ok();
}

void GroupMember::fail(const Status& why) {
  apart_ = true;
  give_up(why);
  send_finished(broken_);
}

void GroupMember::on_frame(int client, const Note& note) {
  if (const Status& why = undefined_.ok() ? broken_ : undefined_; !why.ok()) {
    (void)world_.send(topology_.clients[static_cast<size_t>(client)],
                      Note{NoteKind::kRelease, group_, note.frame, {}, why}.encode());
    return;
  }
  Heard& h = heard_[{note.frame.stream, note.frame.number}];
  if (h.since_s == 0) h.since_s = now_s();
  add_place(&h.places, note.frame, 1, topology_.clients[static_cast<size_t>(client)]);
  h.frame = with_most_written(note.frame, h.frame);
  h.missing = both(h.missing, note.missing);
  h.who.insert(client);
  if (h.differs.ok()) h.differs = note.status;
  if (h.who.size() < clients_.size()) return;
  if (h.differs.ok()) h.differs = compare(h.places);
  to_head({NoteKind::kReady, group_, h.frame, h.missing, h.differs});
}

void GroupMember::add_place(std::vector<Place>* places, const Frame& frame, size_t clients,
                            int rank) {
  const auto same = std::find_if(places->begin(), places->end(), [&](const Place& p) {
    return p.frame.time_s == frame.time_s && p.frame.step == frame.step && p.frame.due == frame.due;
  });
  Place& place = same == places->end() ? places->emplace_back(Place{frame, 0, rank}) : *same;
  place.clients += clients;
  place.rank = std::min(place.rank, rank);
}

Status GroupMember::compare(const std::vector<Place>& places) const {
  if (places.size() < 2) return {};
  const auto fewer = [](const Place& a, const Place& b) {
    return a.clients < b.clients || (a.clients == b.clients && a.rank < b.rank);
  };
  const Place& odd = *std::min_element(places.begin(), places.end(), fewer);
  const Place& most = *std::max_element(places.begin(), places.end(), fewer);
  const auto at = [](const Place& p) {
    return "at step " + std::to_string(p.frame.step) + " (" + number_text(p.frame.time_s) + " s)";
  };
  const std::string others =
      odd.clients == most.clients ? "rank " + std::to_string(most.rank) + " is " : "others are ";
  return {WEIR_E_ORDER,
          work_.name(most.frame) + ": rank " + std::to_string(odd.rank) + " of the model is " +
              at(odd) + " where " + others + at(most) +
              ", but all must call weir_step with the same times; the frame is not written"};
}

void GroupMember::on_ready(int member, const Note& note) {
  Heard& h = heard_[{note.frame.stream, note.frame.number}];
  const size_t members = topology_.groups[static_cast<size_t>(group_)].size(),
               clients = topology_.clients.size();
  add_place(&h.heads, note.frame, (clients - static_cast<size_t>(member) + members - 1) / members,
            topology_.clients[static_cast<size_t>(member)]);
  if (h.differs.ok()) h.differs = note.status;
  if (h.differs.ok()) h.differs = compare(h.heads);
  h.frame = h.members == 0 ? note.frame : with_most_written(note.frame, h.frame);
  h.missing = h.members == 0 ? note.missing : both(h.missing, note.missing);
  if (++h.members < busy_members_) return;
  const Status refused =
      !h.differs.ok() || h.missing.count == 0 ? h.differs : work_.refusal(h.frame, h.missing);
  const Frame frame = h.frame;
  to_members({NoteKind::kGo, group_, frame, {}, refused}, true);
  write(frame, refused);
}

void GroupMember::write(const Frame& frame, const Status& refused) {
  if (!work_.owns()) return;
  last_alive_s_ = now_s();
  Status s = work_.write(frame, refused);
  if (s.code() == WEIR_E_LOST && broken_.ok()) broken_ = s;
  const bool in_file = s.ok();
  if (Status remark = work_.remark(); in_file) s = std::move(remark);
  if (member_ == 0) to_members({NoteKind::kDone, group_, frame, {}, s, in_file}, false);
  release(frame, s, in_file);
}

void GroupMember::release(const Frame& frame, const Status& status, bool in_file) {
  heard_.erase({frame.stream, frame.number});
  to_clients({NoteKind::kRelease, group_, frame, {}, status, in_file});
}

void GroupMember::on_shutdown(int client, const Status& incomplete) {
  if (!incomplete.ok()) give_up(incomplete);
  if (!shutdowns_.insert(client).second) return;
  if (shutdowns_.size() == clients_.size()) to_head(ending(NoteKind::kAllShutdown));
}

void GroupMember::on_all_shutdown() {
  if (++all_shutdowns_ < busy_members_) return;
  to_members(ending(NoteKind::kClose), true);
  close();
}

void GroupMember::close() {
  if (!defined_) return send_finished(undefined_);
  if (!heard_.empty())
    give_up({WEIR_E_LOST, work_.name(heard_.begin()->second.frame) +
                              ": not all ranks of the model ended the step"});
  if (!work_.owns()) return;  // the head will say when the files are closed
  Status s = work_.close(broken_);
  if (member_ == 0) to_members({NoteKind::kClosed, group_, {}, {}, s}, false);
  send_finished(s);
}

// The model's ranks do not wait for this group any more. Its open files stay as they are; others
// have copies of their own.
void GroupMember::end_given_up(const Status& why) {
  if (broken_.ok()) broken_ = why;
  heard_.clear();
  ended_ = apart_ = true;
}

void GroupMember::send_finished(const Status& status) {
  to_clients({NoteKind::kFinished, group_, {}, {}, status});
  ended_ = true;
}

void GroupMember::to_members(const Note& note, bool owners_too) {
  const std::vector<int>& members = topology_.groups[static_cast<size_t>(group_)];
  const std::vector<char> bytes = note.encode();
  const int owners = topology_.owners[static_cast<size_t>(group_)];
  for (int t = owners_too ? 1 : owners; t < static_cast<int>(members.size()); ++t) {
    if (Status sent = world_.send(members[static_cast<size_t>(t)], bytes); !sent.ok())
      give_up(sent);
  }
}

void GroupMember::to_head(const Note& note) {
  if (member_ != 0) {
    if (Status sent = world_.send(head_, note.encode()); !sent.ok()) give_up(sent);
  } else if (note.kind == NoteKind::kReady) {
    on_ready(0, note);
  } else {
    on_all_shutdown();
  }
}

void GroupMember::to_clients(const Note& note) {
  const std::vector<char> bytes = note.encode();
  for (int c : clients_) {
    if (Status sent = world_.send(topology_.clients[static_cast<size_t>(c)], bytes);
        !sent.ok() && broken_.ok())
      broken_ = sent;
  }
  last_alive_s_ = now_s();
}

void GroupMember::still_alive() {
  if (now_s() - last_alive_s_ <= std::min(kAliveEvery_s, world_.time_limit() / 8)) return;
  to_clients({NoteKind::kAlive, group_, {}, {}, {}});
  if (member_ == 0) to_members({NoteKind::kAlive, group_, {}, {}, {}}, false);
}

// A client that is gone, or that has left a frame incomplete for too long, ends the group's work:
// what is written stays readable, and the other clients are notified.
void GroupMember::look_after_clients() {
  const double now = now_s();
  if (now - last_look_s_ < kLookEvery_s) return;
  // While this member slept, or waited for a disk, it cannot say of others that they were late.
  if (const double asleep = now - last_look_s_; asleep > kLookEvery_s + world_.time_limit() / 4) {
    for (auto& [key, h] : heard_) h.since_s = now;
  }
  last_look_s_ = now;
  if (!broken_.ok() && shutdowns_.size() < clients_.size() &&
      now - last_heard_s_ > world_.time_limit()) {
    last_heard_s_ = now;  // the other members have as long
    apart_ = true;
    for (int c : clients_) on_shutdown(c, {});
    return;
  }
  if ((!shutdowns_.empty() || all_shutdowns_ > 0) && now - last_heard_s_ > world_.time_limit())
    return end_alone();
  for (int c : clients_) {
    const int rank = topology_.clients[static_cast<size_t>(c)];
    if (shutdowns_.count(c) != 0 || !is_gone(world_, rank)) continue;
    apart_ = true;
    give_up({WEIR_E_LOST, "rank " + std::to_string(rank) +
                              " of the model is gone; what it had not handed over is lost"});
    on_shutdown(c, {});
    return;
  }
  for (const auto& [key, h] : heard_) {
    if (h.who.empty() || h.who.size() == clients_.size()) continue;
    if (now - h.since_s < world_.time_limit()) {
      still_alive();  // those that have come wait for the others, not for this member
      continue;
    }
    std::string silent;
    for (int c : clients_) {
      if (h.who.count(c) == 0)
        silent += (silent.empty() ? "" : ", ") +
                  std::to_string(topology_.clients[static_cast<size_t>(c)]);
    }
    give_up({WEIR_E_LOST, work_.name(h.frame) + ": ranks that did not end the step within " +
                              std::to_string(static_cast<int>(world_.time_limit())) +
                              " s (time_limit_s): " + silent});
    return;
  }
}

// The clients of some member have ended, which they do together with all others. What was to be
// heard of the rest is lost.
void GroupMember::end_alone() {
  give_up({WEIR_E_LOST, "members of this group of servers did not say within " +
                            std::to_string(static_cast<int>(world_.time_limit())) +
                            " s (time_limit_s) that they have finished; files that are not "
                            "complete keep their temporary names"});
  apart_ = true;
  if (member_ == 0) {
    to_members(ending(NoteKind::kClose), true);
    return close();
  }
  send_finished(broken_);
}

void GroupMember::give_up(const Status& why) {
  if (!broken_.ok()) return;
  broken_ = why;
  for (const auto& [key, h] : std::map<Key, Heard>(std::move(heard_)))
    to_clients({NoteKind::kRelease, group_, h.frame, {}, why});
  heard_.clear();
}

}  // namespace weir::output
