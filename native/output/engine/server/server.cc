// SPDX-License-Identifier: Apache-2.0
#include "output/engine/server/server.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "output/core/trace.h"
#include "output/engine/alive.h"
#include "output/engine/server/member.h"
#include "output/engine/writer.h"
#include "output/transport/patience.h"
#include "output/transport/reliable.h"

namespace weir::output {

namespace {

// After the time limit: it may be over because this process was asleep, and then what came
// meanwhile is to be heard first.
constexpr double kGrace_s = 1;

constexpr double kAskEvery_s = 0.25;

// How long some rank of the model has been waiting, as far as its messages tell.
class Waiting {
 public:
  void on_message() {
    const double now = now_s();
    if (now - last_s_ > kForgotten_s) since_s_ = now;
    last_s_ = now;
  }
  void on_messages_to_the_end() {
    on_message();
    to_the_end_ = true;
  }
  double seconds() const {
    const double now = now_s();
    return last_s_ > 0 && (to_the_end_ || now - last_s_ <= kForgotten_s) ? now - since_s_ : 0;
  }

 private:
  static constexpr double kForgotten_s = 3 * kSayWaitingEvery_s;
  double since_s_ = 0, last_s_ = 0;
  bool to_the_end_ = false;
};

class Server : public Work {
 public:
  Server(World& world, const Settings& settings, const Topology& topology) : world_(world) {
    setup_.settings = settings;
    setup_.topology = topology;
    world.set_time_limit(settings.time_limit_s);
    member_ = std::make_unique<GroupMember>(world_, setup_.topology, *this);
  }

  Status run() {
    Patience patience(1e30, Patience::kLong);  // a model may compute for hours between two frames
    while (!member_->ended()) {
      Result<std::optional<Message>> message = next_message();
      if (!message.ok()) {
        member_->fail(message.status());
      } else if (message->has_value()) {
        member_->on_message(**message);
        patience.restart();
      } else {
        member_->look_after_clients();
        patience.wait();
      }
    }
    if (Status s = world_.flush(); failed_.ok()) failed_ = s;
    if (!member_->apart()) end_world(world_, setup_.rma);
    return failed_.ok() ? member_->broken() : failed_;
  }

  Status define() override {
    WEIR_TRY(agree_setup(world_, &setup_));
    if (setup_.owner >= 0) {
      writer_ = std::make_unique<Writer>(world_, setup_);
      writer_->on_pause([this] { member_->still_alive(); });
      writer_->kept = [this](const Frame& frame) { return wait_for_kept(frame); };
      for (const ClientView& view : setup_.clients)
        senders_ += view.route == Route::kTwoSided ? 1 : 0;
      if (senders_ > 0) writer_->on_late([this](double) { return late(); });
    }
    failed_ = world_.team().agree(writer_ != nullptr ? writer_->prepare() : Status());
    return failed_;
  }

  // After run(): whether the world is still to be ended; with its window, if there is one.
  bool take_unended(std::unique_ptr<Window>* window) {
    *window = std::move(setup_.rma);
    return member_->apart();
  }

  bool owns() const override { return writer_ != nullptr; }
  Status write(const Frame& frame, const Status& refused) override {
    writing_ = {frame.stream, frame.number};
    return writer_->write(frame, refused);
  }
  Status remark() override { return writer_->take_remark(); }
  Status close(const Status& incomplete) override { return writer_->close_all(incomplete); }

  std::string name(const Frame& frame) const override {
    return "stream '" + setup_.catalogue.streams[static_cast<size_t>(frame.stream)].name +
           "', step " + std::to_string(frame.step);
  }
  Status refusal(const Frame& frame, const MissingField& missing) const override {
    const Column& column = setup_.layout.streams[static_cast<size_t>(frame.stream)]
                               .fields.columns[static_cast<size_t>(missing.column)];
    return {WEIR_E_MISSING, name(frame) + ": field '" +
                                setup_.catalogue.fields[static_cast<size_t>(column.field)].name +
                                "' was not put by " + std::to_string(missing.count) +
                                (missing.count == 1 ? " rank" : " ranks") +
                                " of the model (the first: rank " + std::to_string(missing.rank) +
                                "); the frame is not written"};
  }

 private:
  using Key = std::pair<int, int64_t>;  // stream, number

  // kKept is for the writer; all else is for the member, which hears nothing while the writer
  // works.
  Result<std::optional<Message>> next_message() {
    WEIR_TRY(listen());
    if (unheard_.empty()) return std::optional<Message>();
    // A server that has slept begins nothing for ranks that wait no more, or are not there.
    auto at = unheard_.begin();
    if (!given_up_.ok()) at = std::find_if(at, unheard_.end(), is_given_up);
    Message next = std::move(*at);
    unheard_.erase(at);
    return std::optional<Message>(std::move(next));
  }

  static bool is_given_up(const Message& message) {
    Result<Note> note = Note::decode(message.bytes);
    return note.ok() && note->kind == NoteKind::kGivenUp;
  }

  bool take_kept(const Message& message) {
    const Result<Note> note = Note::decode(message.bytes);
    if (!note.ok() || (*note).kind != NoteKind::kKept) return false;
    const Key key{(*note).frame.stream, (*note).frame.number};
    ++kept_[key];
    if (!(*note).status.ok()) lost_.emplace(key, (*note).status);
    return true;
  }

  // Whether the message has said that alone.
  bool take_waiting(const Note& note) {
    if (note.kind == NoteKind::kShutdown || (note.kind == NoteKind::kWaiting && note.to_the_end))
      waiting_.on_messages_to_the_end();
    if (note.kind == NoteKind::kWaiting) waiting_.on_message();
    return note.kind == NoteKind::kWaiting;
  }

  // What comes while the writer works. All but what it must know at once is for the member, later.
  Status listen() {
    for (;;) {
      Result<std::optional<Message>> message = world_.receive();
      if (!message.ok()) return message.status();
      if (!message->has_value()) return {};
      if (take_kept(**message)) continue;
      const Result<Note> note = Note::decode((*message)->bytes);
      if (note.ok() && take_waiting(*note)) continue;
      if (note.ok() && (*note).kind == NoteKind::kGivenUp) given_up_ = (*note).status;
      unheard_.push_back(std::move(**message));
    }
  }

  // Ranks that send do so in their calls of weir, and may compute between two of those for longer
  // than the time limit. It counts while another rank waits for this server, so that the one whose
  // data do not come is behind it; or when that one is gone.
  Status late() {
    WEIR_TRY(listen());
    if (!given_up_.ok()) return given_up_;
    if (const auto at = lost_.find(writing_); at != lost_.end()) return at->second;
    const bool gone =
        std::any_of(setup_.clients.begin(), setup_.clients.end(), [this](const ClientView& view) {
          return view.route == Route::kTwoSided && is_gone(world_, view.rank);
        });
    if (!gone && waiting_.seconds() <= world_.time_limit()) {
      late_since_s_ = 0;
      return {};
    }
    if (late_since_s_ == 0) late_since_s_ = now_s();
    return now_s() - late_since_s_ > kGrace_s ? writer_->overdue() : Status();
  }

  // Every rank that sends pieces of the frame says that they were the frame's until all had left.
  // Without it they may be a later frame's: ranks that have given this server up do not wait for it
  // with what they put there.
  Status wait_for_kept(const Frame& frame) {
    const Key key{frame.stream, frame.number};
    Patience patience(kAskEvery_s);
    while (kept_[key] < senders_) {
      WEIR_TRY(listen());
      if (!given_up_.ok()) return given_up_;
      member_->still_alive();
      if (patience.wait()) continue;
      WEIR_TRY(late());
      patience.restart();
    }
    kept_.erase(kept_.lower_bound({frame.stream, 0}), kept_.upper_bound(key));
    const auto lost = lost_.find(key);
    return lost != lost_.end() ? lost->second : Status();
  }

  ReliableWorld world_;
  Setup setup_;
  std::deque<Message> unheard_;
  std::map<Key, int> kept_;  // how many ranks have said so
  std::map<Key, Status> lost_;  // frames of which a rank has lost pieces
  Key writing_{-1, -1};
  int senders_ = 0;
  Waiting waiting_;
  double late_since_s_ = 0;
  Status given_up_;
  std::unique_ptr<GroupMember> member_;
  std::unique_ptr<Writer> writer_;
  Status failed_;
};

}  // namespace

Status serve(std::unique_ptr<World> world, const Settings& settings, const Topology& topology,
             std::optional<Unended>* unended) {
  const std::string group = "group " + std::to_string(topology.group_of(world->rank()));
  Traced traced(Event::kServe, {}, 0, group);
  std::unique_ptr<Window> window;
  bool left = false;
  Status result;
  {
    Server server(*world, settings, topology);
    result = server.run();
    left = server.take_unended(&window);
  }
  if (left) *unended = Unended{std::move(world), std::move(window)};
  return traced.ended(result);
}

}  // namespace weir::output
