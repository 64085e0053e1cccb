// SPDX-License-Identifier: Apache-2.0
// The modes with servers: frames are announced to the member of the group that writes them, and
// nothing is waited for. What went wrong on any rank is agreed upon with a delay of one output
// step, so that all ranks are notified in the same call and none waits for the others.
#include <algorithm>
#include <utility>

#include "output/core/trace.h"
#include "output/engine/alive.h"
#include "output/engine/session.h"
#include "output/engine/writer.h"
#include "output/transport/patience.h"

namespace weir::output {

namespace {

constexpr double kLookEvery_s = 0.2;
// A server that waits for the same rank says which one it is, at the time limit.
constexpr double kServersWord_s = 1;

}  // namespace

void Session::on_message(const Message& message) {
  Result<Note> note = Note::decode(message.bytes);
  if (!note.ok()) return blame(note.status());
  // A server that slept and was given up knows nothing of it yet: others have its frames.
  if (note->kind != NoteKind::kDefine &&
      std::find(alive_.begin(), alive_.end(), note->group) == alive_.end())
    return;
  last_heard_s_ = now_s();
  if (note->kind == NoteKind::kRelease) {
    flows_[static_cast<size_t>(note->frame.stream)].released(note->frame.number, note->group,
                                                             note->in_file);
  } else if (note->kind == NoteKind::kFinished) {
    finished_[static_cast<size_t>(note->group)] = true;
  }
  // Of definitions that have failed all ranks know.
  if (!note->status.ok() && defined_) blame(note->status);
}

std::string Session::frames_at(int group) const {
  std::string text;
  for (const Flow& flow : flows_) {
    for (const Flow::Held& h : flow.held) {
      if (h.group != group || h.released) continue;
      text += (text.empty() ? "frames that it had not finished: " : ", ") +
              setup_.catalogue.streams[static_cast<size_t>(h.frame.stream)].name + " at step " +
              std::to_string(h.frame.step);
    }
  }
  return text.empty() ? "it had finished all frames that this rank gave it" : text;
}

void Session::look_for_dead(int group) {
  if (gone_[static_cast<size_t>(group)] || now_s() - last_look_s_ < kLookEvery_s) return;
  last_look_s_ = now_s();
  for (int rank : setup_.topology.groups[static_cast<size_t>(group)]) {
    if (rank == world_->rank() || !is_gone(*world_, rank)) continue;
    gone_[static_cast<size_t>(group)] = true;
    blame({WEIR_E_LOST, "server rank " + std::to_string(rank) + " of group " +
                            std::to_string(group) + " is gone; " + frames_at(group)});
    return;
  }
}

void Session::announce(Flow& flow, Flow::Held& held) {
  const Note note{NoteKind::kFrame, held.group, held.frame, held.missing, held.spoiled};
  if (Status sent = world_->send(setup_.topology.gate(held.group, model_->rank()), note.encode());
      !sent.ok())
    blame(sent);
  push(flow, held);
  if (!held.is_sending()) say_kept(held, flow.sends_nothing);
}

// What this rank sent has left the slot while it was the frame's, unless it is lost. An owner that
// was given up in the meantime never hears it.
void Session::say_kept(const Flow::Held& held, const Status& lost) {
  if (!setup_.topology.has_servers()) return;
  const int owners = setup_.layout.streams[static_cast<size_t>(held.frame.stream)].owners(
      setup_.topology.owners[static_cast<size_t>(held.group)]);
  for (int owner = 0; owner < owners; ++owner) {
    const int rank =
        setup_.topology.groups[static_cast<size_t>(held.group)][static_cast<size_t>(owner)];
    if (setup_.route_to(rank) != Route::kTwoSided) continue;
    if (Status sent =
            world_->send(rank, Note{NoteKind::kKept, held.group, held.frame, {}, lost}.encode());
        !sent.ok())
      blame(sent);
  }
}

void Session::hand_over(Flow& flow) {
  const int group = flow.group(alive_);
  Flow::Held held{flow.frame(), group, {}, nullptr, false, {}};
  held.spoiled = flow.spoiled();
  if (const int column = flow.missing_column(); column >= 0)
    held.missing = {column, world_->rank(), 1};
  flow.held.push_back(std::move(held));
  announce(flow, flow.held.back());
  flow.end();
  ++costs_.frames;
}

Status Session::end_step_handing_over() {
  if (alive_.empty()) return {WEIR_E_LOST, "no server is left: nothing is written any more"};
  bool any = false;
  for (Flow& flow : flows_) {
    if (!flow.active()) continue;
    any = true;
    hand_over(flow);
  }
  if (!any) return {};
  if (Status s = poll(); !s.ok()) blame(s);
  for (int group : alive_) look_for_dead(group);
  const Traced traced(Event::kAgree);
  return settle(false);
}

// A rank that has been gone for two looks: what it sent before its end, as at the end of
// weir_finalize, has come by then.
Status Session::look_for_dead_clients() {
  if (now_s() - last_look_s_ < kLookEvery_s) return {};
  last_look_s_ = now_s();
  const std::vector<int>& clients = setup_.topology.clients;
  const auto gone = std::find_if(clients.begin(), clients.end(), [this](int rank) {
    return rank != world_->rank() && is_gone(*world_, rank);
  });
  const int before = std::exchange(gone_client_, gone == clients.end() ? -1 : *gone);
  if (gone == clients.end() || *gone != before) return {};
  return {WEIR_E_LOST,
          "rank " + std::to_string(*gone) + " of the model is gone: its process has ended"};
}

// The agreement of the step before is completed, and, unless this is the last one, another one
// begun.
Status Session::settle(bool last) {
  Result<bool> trouble = settled();
  if (!trouble.ok()) return broken_ = trouble.status();
  Status result = *trouble ? resolve() : Status();
  if (last || alive_.empty()) return result;
  if (Status s = begin_agreement(steps_, words_of_step()); !s.ok()) return broken_ = s;
  return result;
}

Status Session::begin_agreement(int64_t place, const std::string& words) {
  place_ = place;
  place_words_ = words;
  WEIR_TRY(agreement_->start(trouble_.ok() ? 0 : 1, place));
  agreeing_ = true;
  return {};
}

// The agreement that is under way, if any, is completed: whether some rank has trouble. An error:
// no other agreement may be begun.
Result<bool> Session::settled() {
  bool trouble = false;
  const double began = now_s();
  Patience patience(world_->time_limit() + kServersWord_s);
  while (agreeing_) {
    Result<std::optional<Agreement::Outcome>> outcome = agreement_->poll();
    if (!outcome.ok()) return outcome.status();
    if (outcome->has_value()) {
      agreeing_ = false;
      if (!(*outcome)->same_place) return model_->agree_at(trouble_, place_, place_words_);
      trouble = (*outcome)->greatest > 0;
      break;
    }
    if (Status s = poll(); !s.ok()) blame(s);
    // Ranks that do not come together now will not do so at another time either.
    if (patience.slow()) WEIR_TRY(look_for_dead_clients());
    say_waiting();
    if (!patience.wait()) {
      // What the servers have reported may be why.
      return !trouble_.ok() ? trouble_
                            : Status(WEIR_E_LOST,
                                     "a rank of the model did not come to weir_end_step or "
                                     "weir_finalize within " +
                                         std::to_string(static_cast<int>(world_->time_limit())) +
                                         " s (time_limit_s)");
    }
  }
  costs_.wait_s += now_s() - began;
  return trouble;
}

// [collective over the model] Some rank has trouble: all learn the first one's, and which groups
// are lost.
Status Session::resolve() {
  std::vector<int> dead;
  for (int group : std::vector<int>(alive_)) {
    Result<std::pair<int64_t, int>> lost =
        model_->maximum(gone_[static_cast<size_t>(group)] ? 1 : 0);
    if (!lost.ok()) return lost.status();
    if (lost->first == 0) continue;
    gone_[static_cast<size_t>(group)] = true;
    dead.push_back(group);
  }
  Status agreed = model_->agree(trouble_);
  trouble_ = {};
  if (std::find(reported_.begin(), reported_.end(), agreed.message()) == reported_.end())
    reported_.push_back(agreed.message());
  if (dead.empty()) return agreed;
  take_over(dead);
  return {agreed.code(),
          agreed.message() +
              (alive_.empty() ? "; no server is left" : "; the other servers take its files over")};
}

// Frames which a dead group has not finished go to the groups that are left, from the windows where
// they still are. A frame that one rank reported as finished is finished.
void Session::take_over(const std::vector<int>& dead) {
  for (int group : dead) {
    alive_.erase(std::remove(alive_.begin(), alive_.end(), group), alive_.end());
    tell_given_up(group);
  }
  for (Flow& flow : flows_) {
    for (int group : dead) {
      Result<std::pair<int64_t, int>> finished = model_->maximum(flow.last_finished(group));
      if (!finished.ok()) return blame(finished.status());
      for (const Flow::Held& h : flow.held) {
        if (h.group == group && h.frame.number <= finished->first)
          flow.released(h.frame.number, group, true);
      }
    }
    std::vector<int64_t> moved;
    for (const Flow::Held& h : flow.held) {
      if (!h.released && std::find(dead.begin(), dead.end(), h.group) != dead.end())
        moved.push_back(h.frame.number);
    }
    flow.pass_on(dead, alive_);
    for (Flow::Held& h : flow.held) {
      if (!h.released && std::find(moved.begin(), moved.end(), h.frame.number) != moved.end())
        announce(flow, h);
    }
  }
}

// A server that only slept, or waited for a disk, is to end when it wakes.
void Session::tell_given_up(int group) {
  if (model_->rank() != 0) return;
  const Status why{WEIR_E_LOST, "group " + std::to_string(group) +
                                    " of the servers was given up by the model's ranks"};
  for (int rank : setup_.topology.groups[static_cast<size_t>(group)]) {
    if (!is_gone(*world_, rank))
      (void)world_->send(rank, Note{NoteKind::kGivenUp, group, {}, {}, why}.encode());
  }
}

void Session::say_waiting() {
  if (!setup_.topology.has_servers() || now_s() - last_waiting_s_ < kSayWaitingEvery_s) return;
  // Not at once: most waits are short.
  if (now_s() - last_waiting_s_ > 2 * kSayWaitingEvery_s) {
    last_waiting_s_ = now_s();
    return;
  }
  last_waiting_s_ = now_s();
  const std::vector<char> bytes = Note{NoteKind::kWaiting, 0, {}, {}, {}}.encode();
  for (const auto& [rank, route] : setup_.owner_routes) {
    if (route != Route::kTwoSided || is_gone(*world_, rank)) continue;
    if (Status sent = world_->send(rank, bytes); !sent.ok()) blame(sent);
  }
}

void Session::abandon(const char* how) {
  if (setup_.topology.has_servers() && broken_.ok()) {
    (void)wait_for_servers(
        {WEIR_E_ORDER,
         "rank " + std::to_string(world_->rank()) +
             " of the model " + how +
             "; files that are not complete keep their finished steps under their temporary names"},
        true);
  }
}

Status Session::wait_for_servers(const Status& incomplete, bool apart) {
  for (int group : alive_) {
    const Note note{NoteKind::kShutdown, group, {}, {}, incomplete, false, false, apart};
    if (Status sent = world_->send(setup_.topology.gate(group, model_->rank()), note.encode());
        !sent.ok())
      blame(sent);
  }
  // Owners that wait for another rank's pieces are to know who waits for them.
  for (const auto& [rank, route] : setup_.owner_routes) {
    if (route != Route::kTwoSided || is_gone(*world_, rank)) continue;
    if (Status sent =
            world_->send(rank, Note{NoteKind::kWaiting, 0, {}, {}, {}, false, true}.encode());
        !sent.ok())
      blame(sent);
  }
  Patience patience(world_->time_limit(), setup_.longest_pause_us());
  double heard = last_heard_s_;
  for (;;) {
    WEIR_TRY(poll());
    const auto waiting = std::find_if(alive_.begin(), alive_.end(), [&](int g) {
      return !finished_[static_cast<size_t>(g)] && !gone_[static_cast<size_t>(g)];
    });
    if (waiting == alive_.end()) return {};
    look_for_dead(*waiting);
    if (last_heard_s_ > heard) {
      heard = last_heard_s_;
      patience.restart();
    }
    if (patience.wait()) continue;
    gone_[static_cast<size_t>(*waiting)] = true;
    blame(
        {WEIR_E_LOST, "group " + std::to_string(*waiting) + " of the servers (head: rank " +
                          std::to_string(setup_.topology.groups[static_cast<size_t>(*waiting)][0]) +
                          ") did not say that it has finished within " +
                          std::to_string(static_cast<int>(world_->time_limit())) +
                          " s (time_limit_s); " + frames_at(*waiting)});
  }
}

// [collective over the model] All have come to weir_finalize by the same steps; before anything
// that would wait for those that have not.
Status Session::arrive() {
  constexpr int64_t kEnd = -1;
  const std::string here = "weir_finalize after " + std::to_string(steps_) + " steps";
  if (agreement_ == nullptr) return broken_ = model_->agree_at({}, kEnd, here);
  Status outcome = settle(true);
  if (!broken_.ok()) return outcome;
  if (Status s = begin_agreement(kEnd, here); !s.ok()) return broken_ = s;
  Result<bool> trouble = settled();
  if (!trouble.ok()) return broken_ = trouble.status();
  const Status now = *trouble ? resolve() : Status();
  return outcome.ok() ? now : outcome;
}

Status Session::finalize() {
  Traced traced(Event::kFinalize);
  const double began = now_s();
  Status first;
  const auto keep = [&](const Status& s) {
    if (s.ok() || first.message().find(s.message()) != std::string::npos) return;
    first = first.ok() ? s : Status(first.code(), first.message() + "; " + s.message());
  };
  keep(broken_.ok() ? arrive() : stopped());
  if (broken_.ok()) save_states();
  const bool apart = first.code() == WEIR_E_LOST || alive_.size() < gone_.size();
  if (setup_.topology.has_servers()) {
    if (Status s = wait_for_servers(broken_, apart); !s.ok()) blame(s);
  } else if (broken_.ok() && writer_ != nullptr) {
    if (Status s = writer_->close_all({}); !s.ok()) blame(s);
  }
  if (broken_.ok()) {
    const Status agreed = model_->agree(trouble_);
    keep(agreed.code() == WEIR_E_LOST && !trouble_.ok() ? trouble_ : agreed);
  }
  ended_ = !apart && first.code() != WEIR_E_LOST;
  if (ended_) end_world(*world_, setup_.rma);
  costs_.final_s += now_s() - began;
  return traced.ended(first);
}

std::optional<Unended> Session::take_unended() {
  if (ended_) return {};
  if (setup_.rma != nullptr) setup_.window.release();
  return Unended{std::move(world_), std::move(setup_.rma)};
}

}  // namespace weir::output
