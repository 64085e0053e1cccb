// SPDX-License-Identifier: Apache-2.0
// Definitions, steps, put and lend: what is the same in all modes.
#include "output/engine/session.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "output/core/trace.h"
#include "output/engine/alive.h"
#include "output/engine/stamp.h"
#include "output/engine/writer.h"
#include "output/model/text.h"
#include "output/plan/cover.h"
#include "output/transport/patience.h"

namespace weir::output {

Session::Session(std::unique_ptr<World> world, std::unique_ptr<Team> model,
                 const Settings& settings, Topology topology)
    : world_(std::make_unique<ReliableWorld>(std::move(world))), model_(std::move(model)) {
  setup_.settings = settings;
  setup_.topology = std::move(topology);
  world_->set_time_limit(settings.time_limit_s);
  for (size_t g = 0; g < setup_.topology.groups.size(); ++g) alive_.push_back(static_cast<int>(g));
  gone_.resize(alive_.size());
  finished_.resize(alive_.size());
}

// A receiver that is late reads what a rank has that has given it up, and MPI ends it when that is
// gone. A window that could not be freed is fetched from.
Session::~Session() {
  if (setup_.rma != nullptr) setup_.window.release();
  for (const Flow& flow : flows_) {
    if (flow.sends_left || std::any_of(flow.held.begin(), flow.held.end(),
                                       [](const Flow::Held& h) { return h.is_sending(); })) {
      setup_.window.release();
    }
  }
}

int Session::is_due(int stream) const {
  return in_step_ && flows_[static_cast<size_t>(stream)].due() ? 1 : 0;
}

Status Session::define(const Catalogue& catalogue) {
  setup_.catalogue = catalogue;
  Status mine;
  for (const Decomposition& d : catalogue.decompositions) {
    Result<Pieces> pieces = Pieces::of(d, catalogue.grids[static_cast<size_t>(d.grid)]);
    if (mine.ok()) mine = pieces.status();
    setup_.pieces.push_back(pieces.ok() ? std::move(*pieces) : Pieces());
  }
  WEIR_TRY(model_->agree(mine));
  WEIR_TRY(names_.prepare(*model_, catalogue, setup_.settings.directory));
  for (size_t i = 0; i < catalogue.decompositions.size(); ++i) {
    const Decomposition& d = catalogue.decompositions[i];
    const Grid& grid = catalogue.grids[static_cast<size_t>(d.grid)];
    WEIR_TRY(check_cover(*model_, setup_.pieces[i], grid.points(), grid.nx,
                         "decomposition '" + d.name + "' of grid '" + grid.name + "'"));
  }
  if (setup_.topology.has_servers() && model_->rank() == 0) {
    const std::vector<char> define = Note{NoteKind::kDefine, 0, {}, {}, {}}.encode();
    for (const std::vector<int>& group : setup_.topology.groups) {
      for (int rank : group) WEIR_TRY(world_->send(rank, define));
    }
    WEIR_TRY(world_->flush());
  }
  WEIR_TRY(agree_setup(*world_, &setup_));
  Status ready;
  if (!setup_.topology.has_servers() && setup_.owner >= 0) {
    writer_ = std::make_unique<Writer>(*world_, setup_);
    ready = writer_->prepare();
  }
  return world_->team().agree(ready);
}

Status Session::end_definition(const Catalogue& catalogue) {
  Traced traced(Event::kDefine);
  WEIR_TRY(traced.ended(define(catalogue)));
  if (model_->rank() == 0)
    traced.about(std::string(name_of(setup_.settings.mode)) + ": " + choices());
  uses_.resize(catalogue.fields.size());
  for (size_t s = 0; s < setup_.layout.streams.size(); ++s) {
    flows_.emplace_back(setup_, static_cast<int>(s));
    const StreamLayout& stream = setup_.layout.streams[s];
    for (size_t c = 0; c < stream.fields.columns.size(); ++c) {
      uses_[static_cast<size_t>(stream.fields.columns[c].field)].push_back(
          {static_cast<int>(s), static_cast<int>(c)});
    }
    // Longitude and latitude stay in the window; each file of the stream takes them from there.
    for (size_t pair = 0; pair < stream.file.lonlat.size(); ++pair) {
      const Grid& grid = setup_.catalogue.grids[static_cast<size_t>(stream.file.lonlat[pair].grid)];
      memcpy(setup_.window.data() + setup_.mine.streams[s].lonlat[2 * pair], grid.lon.data(),
             grid.lon.size() * sizeof(double));
      memcpy(setup_.window.data() + setup_.mine.streams[s].lonlat[2 * pair + 1], grid.lat.data(),
             grid.lat.size() * sizeof(double));
    }
  }
  if (setup_.topology.has_servers()) agreement_ = world_->agreement(*model_);
  WEIR_TRY(resume());
  WEIR_TRY(model_->agree(sync_window()));
  defined_ = true;
  if (setup_.settings.verbose && model_->rank() == 0)
    fprintf(stderr, "weir: %s\n", choices().c_str());
  // Nobody's window may be read before it is filled, and nobody's server may wait for a frame of a
  // rank that is still here.
  return model_->barrier();
}

std::string Session::choices() const {
  std::string text = "this rank's output buffers take " + std::to_string(setup_.mine.bytes) +
                     " bytes, " + std::to_string(setup_.layout.slots) +
                     " frames of each stream; its data reach";
  for (const auto& [rank, route] : setup_.owner_routes)
    text += " rank " + std::to_string(rank) + " (" + name_of(route) + ")";
  if (setup_.rma != nullptr)
    text += "; MPI's memory model of windows is " + std::string(setup_.rma->memory_model());
  return text;
}

Status Session::step(double time_s) {
  if (!defined_)
    return {WEIR_E_ORDER,
            "weir_step: the end of definitions has failed; only weir_finalize is left"};
  const auto text = [](double t) { return number_text(t) + " s"; };
  if (!std::isfinite(time_s))
    return {WEIR_E_ARGUMENT,
            "weir_step: the time is " + number_text(time_s) + "; expected seconds"};
  if (in_step_)
    return {WEIR_E_ORDER, "weir_step at " + text(time_s) + ": the step at " + text(time_s_) +
                              " was not ended by weir_end_step"};
  if (steps_ > 0 && !(time_s > time_s_)) {
    return {WEIR_E_ORDER, "weir_step at " + text(time_s) +
                              ": time must be later than that of the step before, " +
                              text(time_s_)};
  }
  for (const Flow& flow : flows_) WEIR_TRY(flow.check_first(time_s));
  in_step_ = true;
  time_s_ = time_s;
  for (Flow& flow : flows_) {
    flow.begin(time_s, steps_);
    if (!flow.begins_file() || alive_.empty()) continue;  // without a group no file is made
    const Status named = names_.claim(setup_.catalogue, flow.frame());
    if (named.ok()) continue;
    flow.refuse();
    if (repeated_.ok()) repeated_ = named;
  }
  ++steps_;
  return {};
}

char* Session::place(const Use& use) {
  const ClientStream& stream = setup_.mine.streams[static_cast<size_t>(use.stream)];
  const int64_t slot =
      stream.slot(flows_[static_cast<size_t>(use.stream)].frame().number, setup_.layout.slots);
  return setup_.window.data() + slot + stream.fields[static_cast<size_t>(use.column)];
}

Status Session::poll() {
  for (;;) {
    Result<std::optional<Message>> message = world_->receive();
    if (!message.ok()) return message.status();
    if (!message->has_value()) break;
    on_message(**message);
  }
  for (Flow& flow : flows_) drive(flow);
  return {};
}

// What is being sent of the stream's frames, in their order.
void Session::drive(Flow& flow) {
  bool behind = false;
  for (Flow::Held& h : flow.held) {
    if (!behind) send_pieces(h);
    behind = behind || !h.unsent.empty();
    if (h.flight == nullptr) continue;
    Result<bool> done = h.flight->finished();
    if (!done.ok()) blame(done.status());
    if (!h.flight->idle() || !h.unsent.empty()) continue;
    h.flight.reset();
    if (!done.ok() && flow.sends_nothing.ok()) flow.sends_nothing = done.status();
    say_kept(h, done.status());
  }
}

void Session::send_pieces(Flow::Held& held) {
  for (; !held.unsent.empty(); held.unsent.pop_front()) {
    const Flow::Held::Piece& piece = held.unsent.front();
    if (held.flight == nullptr) held.flight = world_->flight(held.frame.stream);
    Status sent = held.flight->send(piece.to, piece.from, piece.bytes);
    if (sent.ok()) continue;
    blame(sent);
    return;
  }
}

// The slot is free for the frame that is being filled, and marked as its; else the frame is lost on
// this rank.
Status Session::take_slot(Flow& flow) {
  Status s = free_slot(flow);
  if (s.ok()) return s;
  flow.lose();
  if (s.code() == WEIR_E_MPI) flow.spoil(s);
  return s;
}

Status Session::free_slot(Flow& flow) {
  WEIR_TRY(wait_for_slot(flow));
  const ClientStream& stream = setup_.mine.streams[static_cast<size_t>(flow.frame().stream)];
  char* stamp =
      setup_.window.data() + stream.slot(flow.frame().number, setup_.layout.slots) + stream.stamp;
  if (Stamp::is(stamp, flow.frame().number)) return {};
  Stamp::set(stamp, flow.frame().number);
  return sync_window();
}

// What is fetched from the window from now on is what is stored in it, and nothing that is stored
// later comes before this.
Status Session::sync_window() { return setup_.rma == nullptr ? Status() : setup_.rma->sync(); }

Status Session::wait_for_slot(Flow& flow) {
  if (flow.in_the_way() == nullptr) return {};
  const Traced traced(Event::kWait,
                      setup_.catalogue.streams[static_cast<size_t>(flow.frame().stream)].name);
  const double began = now_s();
  Patience patience(world_->time_limit(), setup_.longest_pause_us());
  Status result;
  double heard = last_heard_s_;
  while (result.ok()) {
    result = poll();
    Flow::Held* held = flow.in_the_way();
    if (held == nullptr || !result.ok()) break;
    look_for_dead(held->group);
    say_waiting();
    const std::string name =
        setup_.catalogue.streams[static_cast<size_t>(flow.frame().stream)].name;
    if (gone_[static_cast<size_t>(held->group)]) {
      result = {WEIR_E_LOST,
                "stream '" + name + "': step " + std::to_string(flow.frame().step) +
                    " is lost on this rank: its buffers wait for a server that is gone"};
    } else if (last_heard_s_ > heard) {
      heard = last_heard_s_;
      patience.restart();
    } else if (!patience.wait()) {
      gone_[static_cast<size_t>(held->group)] = true;
      blame({WEIR_E_LOST,
             "group " + std::to_string(held->group) + " of the servers (head: rank " +
                 std::to_string(setup_.topology.groups[static_cast<size_t>(held->group)][0]) +
                 ") was silent for " + std::to_string(static_cast<int>(world_->time_limit())) +
                 " s (time_limit_s); " + frames_at(held->group)});
    }
  }
  costs_.wait_s += now_s() - began;
  return result;
}

void Session::store(const Use& use, const void* data) {
  const Column& column = setup_.layout.streams[static_cast<size_t>(use.stream)]
                             .fields.columns[static_cast<size_t>(use.column)];
  const Decomposition& d =
      setup_.catalogue.decompositions[static_cast<size_t>(column.decomposition)];
  const size_t element = size_of(column.type);
  const char* from = static_cast<const char*>(data);
  char* to = place(use);
  const Halo& h = d.halo;
  if (!d.block || (h.west == 0 && h.east == 0 && h.south == 0 && h.north == 0)) {
    if (from != to)
      memcpy(to, from, element * static_cast<size_t>(column.shape.levels * d.points()));
    return;
  }
  const auto row = static_cast<size_t>(d.ni + h.west + h.east) * element,
             kept = static_cast<size_t>(d.ni) * element;
  for (int64_t level = 0; level < column.shape.levels; ++level) {
    const char* at = from +
                     row * static_cast<size_t>(level * (d.nj + h.south + h.north) + h.south) +
                     static_cast<size_t>(h.west) * element;
    for (int64_t j = 0; j < d.nj; ++j, at += row, to += kept) memcpy(to, at, kept);
  }
}

Status Session::put(int field, const void* data) {
  if (!defined_) return {WEIR_E_ORDER, "weir_put: the end of definitions has failed"};
  const std::string& name = setup_.catalogue.fields[static_cast<size_t>(field)].name;
  if (!in_step_)
    return {WEIR_E_ORDER,
            "weir_put of field '" + name + "': not within a step (weir_step ... weir_end_step)"};
  if (!broken_.ok()) return stopped();
  const double began = now_s(), waited = costs_.wait_s;
  Status lost;  // of each stream's frame; those of other streams take the field all the same
  for (const Use& use : uses_[static_cast<size_t>(field)]) {
    Flow& flow = flows_[static_cast<size_t>(use.stream)];
    if (!flow.wants(use.column) || flow.lost()) continue;
    if (flow.has(use.column))
      return {WEIR_E_ORDER, "weir_put of field '" + name + "': it was put already in this step"};
    if (data == nullptr &&
        setup_.pieces[static_cast<size_t>(
                          setup_.catalogue.fields[static_cast<size_t>(field)].decomposition)]
                .points() > 0) {
      return {WEIR_E_ARGUMENT, "weir_put of field '" + name + "': no data"};
    }
    if (Status s = take_slot(flow); !s.ok()) {
      lost = lost.ok() ? s : Status(lost.code(), lost.message() + "; " + s.message());
      continue;
    }
    const Column& c = setup_.layout.streams[static_cast<size_t>(use.stream)]
                          .fields.columns[static_cast<size_t>(use.column)];
    const int64_t bytes = c.shape.levels *
                          setup_.pieces[static_cast<size_t>(c.decomposition)].points() *
                          static_cast<int64_t>(size_of(c.type));
    const bool lent = data == place(use);
    const Traced traced(lent ? Event::kLend : Event::kPut,
                        setup_.catalogue.streams[static_cast<size_t>(use.stream)].name, bytes,
                        name);
    store(use, data);
    flow.mark(use.column);
    costs_.put_bytes += bytes;
  }
  costs_.put_s += now_s() - began - (costs_.wait_s - waited);
  return lost;
}

Status Session::lend(int field, void** data) {
  if (!defined_) return {WEIR_E_ORDER, "weir_field_lend: the end of definitions has failed"};
  const std::string& name = setup_.catalogue.fields[static_cast<size_t>(field)].name;
  if (!in_step_)
    return {WEIR_E_ORDER, "weir_field_lend of field '" + name +
                              "': not within a step (weir_step ... weir_end_step)"};
  *data = nullptr;
  if (!broken_.ok()) return stopped();
  const Use* wanted = nullptr;
  for (const Use& use : uses_[static_cast<size_t>(field)]) {
    if (!flows_[static_cast<size_t>(use.stream)].wants(use.column)) continue;
    if (wanted != nullptr)
      return {WEIR_E_ORDER, "weir_field_lend of field '" + name +
                                "': two streams want it at this step; use weir_put alone"};
    wanted = &use;
  }
  if (wanted == nullptr || flows_[static_cast<size_t>(wanted->stream)].lost()) return {};
  const Halo& h = setup_.catalogue
                      .decompositions[static_cast<size_t>(
                          setup_.catalogue.fields[static_cast<size_t>(field)].decomposition)]
                      .halo;
  if (h.west + h.east + h.south + h.north > 0) {
    return {WEIR_E_ORDER, "weir_field_lend of field '" + name +
                              "': its decomposition has a halo, what is lent has none; use "
                              "weir_put alone, or a decomposition without a halo for this field"};
  }
  WEIR_TRY(take_slot(flows_[static_cast<size_t>(wanted->stream)]));
  *data = place(*wanted);
  return {};
}

Status Session::missing_of(const Flow& flow) const {
  if (!flow.spoiled().ok()) return flow.spoiled();
  const int column = flow.missing_column();
  if (column < 0) return {};
  const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(flow.frame().stream)];
  const int field = setup_.layout.streams[static_cast<size_t>(flow.frame().stream)]
                        .fields.columns[static_cast<size_t>(column)]
                        .field;
  return {WEIR_E_MISSING, "stream '" + stream.name + "', step " +
                              std::to_string(flow.frame().step) + ": field '" +
                              setup_.catalogue.fields[static_cast<size_t>(field)].name +
                              "' was not put; the frame is not written"};
}

// Send what owners want of the frame and cannot fetch, in the order in which they take it.
void Session::push(Flow& flow, Flow::Held& held) {
  if (!flow.sends_nothing.ok() || held.frame.save != 0) return;
  const auto s = static_cast<size_t>(held.frame.stream);
  const StreamLayout& stream = setup_.layout.streams[s];
  const ClientStream& mine = setup_.mine.streams[s];
  const int of_group = setup_.topology.owners[static_cast<size_t>(held.group)],
            owners = stream.owners(of_group);
  const auto send = [&](int to, const Section& section, const Part& slab, int64_t from) {
    const Column& c = section.columns[static_cast<size_t>(slab.column)];
    if (!held.frame.due && c.operation == WEIR_INSTANT) return;
    const Pieces& pieces = setup_.pieces[static_cast<size_t>(c.decomposition)];
    const auto element = static_cast<int64_t>(size_of(c.type));
    each_strip(c.shape, slab, [&](const Strip& strip) {
      const auto [lo, hi] = pieces.bounds(strip.first, strip.last);
      if (lo == hi) return;
      held.unsent.push_back(
          {to, setup_.window.data() + from + (strip.level * pieces.points() + lo) * element,
           strip.levels * (hi - lo) * element});
    });
  };
  for (int owner = 0; owner < owners; ++owner) {
    const int rank =
        setup_.topology.groups[static_cast<size_t>(held.group)][static_cast<size_t>(owner)];
    if (setup_.route_to(rank) != Route::kTwoSided) continue;
    if (held.frame.lonlat) {
      for (const Part& slab : stream.lonlat.of(owners, owner))
        send(rank, stream.lonlat, slab, mine.lonlat[static_cast<size_t>(slab.column)]);
    }
    const int64_t slot = mine.slot(held.frame.number, setup_.layout.slots);
    for (const Part& slab : stream.fields.of(owners, owner))
      send(rank, stream.fields, slab, slot + mine.fields[static_cast<size_t>(slab.column)]);
  }
  for (const Flow::Held& before : flow.held) {
    if (&before == &held) return send_pieces(held);
    if (!before.unsent.empty()) return;
  }
}

void Session::blame(const Status& trouble) {
  constexpr size_t kLongestTrouble = 800;
  // What the ranks have agreed upon may have a rank's name added at its end, or other words before
  // it.
  for (const std::string& message : reported_) {
    if (message.find(trouble.message()) != std::string::npos) return;
  }
  reported_.push_back(trouble.message());
  if (trouble_.ok()) {
    trouble_ = trouble;
  } else if (trouble_.message().size() < kLongestTrouble) {  // each stream's
    const weir_status code = trouble_.code() == WEIR_E_VALUE ? trouble.code() : trouble_.code();
    trouble_ = {code, trouble_.message() + "; " + trouble.message()};
  }
}

Status Session::stopped() const {
  return {broken_.code(), "nothing is written any more; an earlier call reported why"};
}

Status Session::end_step() {
  if (!in_step_) return {WEIR_E_ORDER, "weir_end_step: no step has begun (weir_step)"};
  in_step_ = false;
  if (!broken_.ok()) return stopped();
  const double began = now_s();
  Traced traced(Event::kEndStep);
  if (Status s = sync_window(); !s.ok()) {
    blame(s);
    for (Flow& flow : flows_) flow.spoil(s);
  }
  Status result = setup_.topology.has_servers() ? end_step_handing_over() : end_step_together();
  // The same on all ranks, as time and names are.
  const Status repeated = std::exchange(repeated_, {});
  if (!repeated.ok())
    result = result.ok() ? repeated
                         : Status(result.code(), result.message() + "; " + repeated.message());
  (void)traced.ended(result);
  costs_.end_step_s += now_s() - began;
  return result;
}

}  // namespace weir::output
