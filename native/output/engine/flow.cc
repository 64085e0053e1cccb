// SPDX-License-Identifier: Apache-2.0
#include "output/engine/flow.h"

#include <algorithm>

#include "output/model/schedule.h"

namespace weir::output {

Flow::Flow(const Setup& setup, int stream) : setup_(setup), stream_(stream) {
  frame_.stream = stream;
  put_.resize(setup.layout.streams[static_cast<size_t>(stream)].fields.columns.size());
}

void Flow::begin(double time_s, int64_t step) {
  const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(stream_)];
  if (!step_s_) last_due_s_ = time_s;
  const bool due = is_due(stream, step_s_, time_s, step);
  step_s_ = time_s;
  active_ = !stream.fields.empty() && (due || stream.reduces());
  if (!active_) return;
  put_.assign(put_.size(), false);
  frame_.due = due;
  frame_.step = step;
  frame_.time_s = time_s;
  frame_.begin_s = last_due_s_;
  frame_.previous_s = frame_.number == 0 ? time_s : last_s_;
  last_s_ = time_s;
  frame_.last = 0;
  if (due) begin_file(time_s, step);
}

void Flow::begin_file(double time_s, int64_t step) {
  const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(stream_)];
  if (stream.period != Period::kNone) time_s = due_since_s(stream, time_s);
  const Result<int64_t> period = period_at(setup_.catalogue, stream.period, time_s);
  if (frame_.record > 0 && period.ok() && *period != period_) ++frame_.file, frame_.record = 0;
  if (frame_.record == 0) frame_.file_step = step, frame_.file_time_s = time_s, period_ = period.ok() ? *period : 0;
  frame_.last = stream.rotation > 0 ? frame_.record + 1 == stream.rotation : ends_period(setup_.catalogue, stream, time_s);
  count_written();
}

void Flow::refuse() {
  frame_.due = frame_.last = 0;
  active_ = setup_.catalogue.streams[static_cast<size_t>(stream_)].reduces();
}

bool Flow::wants(int column) const {
  const Section& fields = setup_.layout.streams[static_cast<size_t>(stream_)].fields;
  return active_ && (frame_.due || fields.columns[static_cast<size_t>(column)].operation != WEIR_INSTANT);
}

int Flow::lacking() const {
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
  // Not only at the front: a frame of a group that is behind, or dead, may lie before those that others have finished.
  std::erase_if(held, [](const Held& h) { return h.released && h.flight == nullptr; });
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
  const auto lost = [&](int group) { return std::find(dead.begin(), dead.end(), group) != dead.end(); };
  const auto next = [&](int64_t file) { return alive.empty() ? -1 : Topology::group_of_file(stream_, file, alive); };
  int64_t given = -1;  // the file whose longitude and latitude go with a frame that is held
  for (Held& h : held) {
    if (h.released || !lost(h.group)) continue;
    sends_left = sends_left || h.flight != nullptr;
    h.flight.reset();
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
    if (written && h.frame.due) written_[h.frame.file] = {written_[h.frame.file].frames + 1, h.frame.generation};
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
