// SPDX-License-Identifier: Apache-2.0
#include "output/engine/flow.h"

#include "output/model/schedule.h"

namespace weir::output {

Flow::Flow(const Setup& setup, int stream) : setup_(setup), stream_(stream) {
  frame_.stream = stream;
  put_.resize(setup.layout.streams[static_cast<size_t>(stream)].fields.columns.size());
}

void Flow::begin(double time_s, int64_t step) {
  const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(stream_)];
  if (!began_) last_due_s_ = time_s;
  began_ = true;
  const bool due = is_due(stream, time_s, step);
  active_ = !stream.fields.empty() && (due || stream.reduces());
  if (!active_) return;
  put_.assign(put_.size(), false);
  frame_.due = due;
  frame_.step = step;
  frame_.time_s = time_s;
  frame_.begin_s = last_due_s_;
  frame_.previous_s = frame_.number == 0 ? time_s : last_s_;
  last_s_ = time_s;
  if (frame_.record == 0) frame_.file_step = step, frame_.file_time_s = time_s;
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
  const int64_t rotation = setup_.catalogue.streams[static_cast<size_t>(stream_)].rotation;
  if (frame_.due) {
    last_due_s_ = frame_.time_s;
    ++frame_.record;
    if (rotation > 0 && frame_.record == rotation) ++frame_.file, frame_.record = 0;
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

void Flow::released(int64_t number, bool written) {
  for (Held& h : held) {
    if (h.frame.number != number || h.released) continue;
    h.released = true;
    last_finished_[h.group] = number;
    if (h.frame.file != written_file_) written_file_ = h.frame.file, written_ = 0;
    if (written && h.frame.due) ++written_;
  }
  count_written();
}

// Frames of the same file that are still held, and the next one, know how many are in the file.
void Flow::count_written() {
  for (Held& h : held) h.frame.written = h.frame.file == written_file_ ? written_ : 0;
  frame_.written = frame_.file == written_file_ ? written_ : 0;
}

int64_t Flow::last_finished(int group) const {
  const auto at = last_finished_.find(group);
  return at == last_finished_.end() ? -1 : at->second;
}

}  // namespace weir::output
