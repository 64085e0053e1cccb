// SPDX-License-Identifier: Apache-2.0
#include "output/engine/flow.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "output/model/schedule.h"
#include "output/model/text.h"

namespace weir::output {

Flow::Flow(const Setup& setup, int stream) : setup_(setup), stream_(stream) {
  frame_.stream = stream;
  put_.resize(setup.layout.streams[static_cast<size_t>(stream)].fields.columns.size());
}

namespace {

// Of a step: clocks of models are rounded.
constexpr double kTolerance = 1e-6, kGap = 1.5;

bool is_same_time(double a_s, double b_s, double step_s) {
  return std::abs(a_s - b_s) <= kTolerance * (step_s > 0 ? step_s : 1);
}

}  // namespace

void Flow::resume(const Standing& s) {
  step_s_ = s.time_s;
  last_due_s_ = frame_.begin_s = s.begin_s;
  steps_before_ = s.step;
  resumed_file_ = s.file;
  frame_.step = s.step;
  frame_.file = s.file;
  frame_.record = s.record;
  frame_.file_step = s.file_step;
  frame_.file_time_s = s.file_time_s;
  frame_.resumed = 1;
  frame_.resumed_steps = s.steps;
  frame_.resumed_records = s.record;
  frame_.longest_step_s = s.longest_step_s;
  const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(stream_)];
  const double of_s =
      stream.period == Period::kNone ? s.file_time_s : due_since_s(stream, s.file_time_s);
  if (const Result<int64_t> period = period_at(setup_.catalogue, stream.period, of_s); period.ok())
    period_ = *period;
}

Status Flow::check_first(double time_s) const {
  if (stepped_ || frame_.resumed == 0) return {};
  const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(stream_)];
  const double longest_s = frame_.longest_step_s, gap_s = time_s - *step_s_;
  const std::string what = "weir_step at " + number_text(time_s) +
                           " s: the saved state of stream " + quoted(stream.name) + ", " +
                           state_path(setup_.settings.directory, stream) + ", is of " +
                           number_text(*step_s_) + " s";
  if (gap_s < 0 && !is_same_time(time_s, *step_s_, longest_s)) {
    return {WEIR_E_FILE, what +
                             ", which is later; begin where the run before ended, or take its "
                             "files and the state away to begin anew"};
  }
  if (longest_s > 0 && gap_s > kGap * longest_s) {
    return {WEIR_E_FILE, what + ", and its steps are of " + number_text(longest_s) +
                             " s: steps between are missing; begin where the run before ended, or "
                             "take its files and the state away to begin anew"};
  }
  return {};
}

void Flow::begin_saving() {
  frame_.due = frame_.last = frame_.lonlat = 0;
  frame_.save = 1;
  frame_.time_s = *step_s_;
  frame_.begin_s = last_due_s_;
  choose_file();
}

// The number of a step, those of runs before counted; a run's first step may be the last of the run
// before once more.
int64_t Flow::number_step(double time_s, int64_t step) {
  if (!stepped_ && frame_.resumed != 0 && !is_same_time(time_s, *step_s_, frame_.longest_step_s))
    ++steps_before_;
  return steps_before_ + step;
}

// A value that is reduced stands for the time since the step before. The first step has none before
// it: it is in no mean, and it gets no frame.
void Flow::begin(double time_s, int64_t step) {
  const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(stream_)];
  step = number_step(time_s, step);
  frame_.step = step;
  const bool again =
      !stepped_ && frame_.resumed != 0 && is_same_time(time_s, *step_s_, frame_.longest_step_s);
  stepped_ = true;
  active_ = false;
  if (again) return;
  const std::optional<double> before_s = std::exchange(step_s_, time_s);
  if (before_s) frame_.longest_step_s = std::max(frame_.longest_step_s, time_s - *before_s);
  const bool due = is_due(stream, before_s, time_s, step);
  if (!before_s) last_due_s_ = time_s;
  active_ = !stream.fields.empty() && (stream.reduces() ? before_s.has_value() : due);
  if (!active_) return;
  put_.assign(put_.size(), false);
  spoiled_ = sends_nothing;
  lost_ = false;
  frame_.due = due;
  frame_.time_s = time_s;
  frame_.begin_s = last_due_s_;
  frame_.previous_s = before_s.value_or(time_s);
  frame_.last = 0;
  choose_file();
  if (due) begin_record();
}

// The time that decides which file a frame is in: an interval belongs to the file in which it
// begins.
double Flow::file_time_s() const {
  const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(stream_)];
  const double time_s = stream.reduces() ? frame_.begin_s : frame_.time_s;
  return stream.period == Period::kNone ? time_s : due_since_s(stream, time_s);
}

// Of the steps of an interval, all have the same.
void Flow::choose_file() {
  const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(stream_)];
  const Result<int64_t> period = period_at(setup_.catalogue, stream.period, file_time_s());
  if (frame_.record > 0 && period.ok() && *period != period_) ++frame_.file, frame_.record = 0;
  if (frame_.file != resumed_file_) frame_.resumed_records = -1;
  if (frame_.record == 0) period_ = period.ok() ? *period : 0;
}

void Flow::begin_record() {
  const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(stream_)];
  if (frame_.record == 0) frame_.file_step = frame_.step, frame_.file_time_s = file_time_s();
  frame_.last = stream.rotation > 0 && frame_.record + 1 == stream.rotation;
  if (stream.period != Period::kNone) {
    const double next_s =
        due_since_s(stream, frame_.time_s) + (stream.reduces() ? 0 : stream.every_s);
    const Result<int64_t> next = period_at(setup_.catalogue, stream.period, next_s);
    frame_.last = next.ok() && *next != period_;
  }
  count_written();
}

void Flow::refuse() {
  frame_.due = frame_.last = 0;
  active_ = setup_.catalogue.streams[static_cast<size_t>(stream_)].reduces();
}

bool Flow::wants(int column) const {
  const Section& fields = setup_.layout.streams[static_cast<size_t>(stream_)].fields;
  return active_ && frame_.save == 0 &&
         (frame_.due || fields.columns[static_cast<size_t>(column)].operation != WEIR_INSTANT);
}

void Flow::spoil(const Status& why) {
  if (active_ && spoiled_.ok()) spoiled_ = why;
}

int Flow::missing_column() const {
  for (int c = 0; c < static_cast<int>(put_.size()); ++c) {
    if (wants(c) && !has(c)) return c;
  }
  return -1;
}

void Flow::end() {
  if (frame_.due) {
    last_due_s_ = frame_.time_s;
    ++frame_.record;
    if (frame_.last) ++frame_.file, frame_.record = 0;
    frame_.interval = frame_.number + 1;
  }
  ++frame_.number;
  active_ = false;
  count_written();
}

Flow::Held* Flow::in_the_way() {
  // Not only at the front: a frame of a group that is behind, or dead, may lie before those that
  // others have finished.
  std::erase_if(held, [](const Held& h) { return h.released && !h.is_sending(); });
  for (Held& h : held) {
    if (h.frame.number % setup_.layout.slots == frame_.number % setup_.layout.slots) return &h;
  }
  return nullptr;
}

int Flow::group(const std::vector<int>& alive) {
  if (group_file_ != frame_.file) {
    group_file_ = frame_.file;
    group_ = Topology::group_of_file(stream_, frame_.file, alive);
    frame_.generation = 0;
    lonlat_given_ = false;
  }
  frame_.lonlat = frame_.due && !lonlat_given_;
  if (frame_.due) lonlat_given_ = true;
  return group_;
}

void Flow::pass_on(const std::vector<int>& dead, const std::vector<int>& alive) {
  const auto lost = [&](int group) {
    return std::find(dead.begin(), dead.end(), group) != dead.end();
  };
  const auto next = [&](int64_t file) {
    return alive.empty() ? -1 : Topology::group_of_file(stream_, file, alive);
  };
  int64_t given = -1;  // the file whose longitude and latitude go with a frame that is held
  for (Held& h : held) {
    if (h.released || !lost(h.group)) continue;
    sends_left = sends_left || h.flight != nullptr;
    h.flight.reset();
    h.unsent.clear();
    h.released = alive.empty();
    h.group = next(h.frame.file);
    ++h.frame.generation;
    h.frame.lonlat = h.frame.due && given != h.frame.file;
    if (h.frame.lonlat) given = h.frame.file;
  }
  if (group_file_ != frame_.file || !lost(group_)) return;
  group_ = next(frame_.file);
  ++frame_.generation;
  lonlat_given_ = given == frame_.file;
}

void Flow::released(int64_t number, int group, bool written) {
  for (Held& h : held) {
    if (h.frame.number != number || h.group != group || h.released) continue;
    h.released = true;
    last_finished_[h.group] = number;
    if (written && h.frame.due)
      written_[h.frame.file] = {written_[h.frame.file].frames + 1, h.frame.generation};
  }
  int64_t oldest = frame_.file;
  for (const Held& h : held) oldest = std::min(oldest, h.frame.file);
  written_.erase(written_.begin(), written_.lower_bound(oldest));
  count_written();
}

// Frames of the same file that are still held, and the next one, know how many are in the file.
void Flow::count_written() {
  const auto tell = [this](Frame& frame) {
    const auto at = written_.find(frame.file);
    frame.written = at == written_.end() ? 0 : at->second.frames;
    frame.source = at == written_.end() ? 0 : at->second.generation;
  };
  for (Held& h : held) tell(h.frame);
  tell(frame_);
}

int64_t Flow::last_finished(int group) const {
  const auto at = last_finished_.find(group);
  return at == last_finished_.end() ? -1 : at->second;
}

}  // namespace weir::output
