// SPDX-License-Identifier: Apache-2.0
// What is added up for each file and variable that a rank writes, and the sums that grow in time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "reader/clock.h"
#include "reader/output_calls.h"

namespace weir::reader {

struct Sums {
  uint64_t calls = 0, bytes = 0;
  // In ticks. all, with MPI and the system, with the system alone: each is part of the one before
  int64_t all = 0, inner = 0, system = 0;
  int64_t gather = 0, packing = 0;
  int64_t waited_ns = 0;
  int64_t waiting_ns = 0, gathering_wait_ns = 0;  // parts of inner and of gather that are none

  void add(const Sums& other) {
    calls += other.calls, bytes += other.bytes;
    all += other.all, inner += other.inner, system += other.system;
    gather += other.gather, packing += other.packing;
    waited_ns += other.waited_ns;
    waiting_ns += other.waiting_ns, gathering_wait_ns += other.gathering_wait_ns;
  }
};

// A union of intervals that come by falling end.
class Cover {
 public:
  // Of an interval the part that no other one had: [begin, until()), empty where that is no more.
  int64_t until(int64_t end) const { return std::min(end, begin_); }
  int64_t add(int64_t begin, int64_t end) {
    const int64_t length = std::max<int64_t>(until(end) - begin, 0);
    begin_ = std::min(begin_, begin);
    return length;
  }

 private:
  int64_t begin_ = INT64_MAX;
};

// What is added up as one line of the table. A moment in which several calls run at once, of
// threads or of programs that the rank started, counts once; of what is put off, too.
struct Account {
  Sums kept;
  Cover all, inner, system;  // of Sums
};

// A file that is written, or a variable of it. What belongs to a session of the file that has not
// proved to be one of writing is kept apart.
struct Label {
  uint32_t number = 0;
  bool is_pending = false;
  uint32_t phase = 0;  // of the file, in which this variable was put last
  Account account;
  Sums pending;
};

// The same of a file with all its variables. Time goes backwards: a session ends before it begins.
struct FileState {
  Label* whole = nullptr;   // what is on none of its variables
  bool is_written = false;  // in the session at hand
  uint32_t phase = 1;       // of puts of different variables
  uint32_t dropped = 0;     // sessions without writes so far
  Account account;
  Sums pending, pending_of_rank;
  std::vector<Label*> labels;  // with something pending
};

// The labels of one rank, made when they are first met, and what they are together.
class Labels {
 public:
  explicit Labels(const weir_reader_output& asked)
      : asked_(asked), labels_(asked.labels), files_(asked.labels) {}

  Label& label(uint32_t number) {
    Label*& place = labels_[number];
    if (place == nullptr) place = &all_labels_.emplace_back(), place->number = number;
    return *place;
  }
  FileState& file_of(uint32_t label_number) {
    const uint32_t number = asked_.file_of[label_number];
    FileState*& place = files_[number];
    if (place == nullptr) place = &all_files_.emplace_back(), place->whole = &label(number);
    return *place;
  }
  const std::deque<Label>& all() const { return all_labels_; }
  const std::deque<FileState>& files() const { return all_files_; }
  const Account& whole() const { return whole_; }

  // What follows on the label is put off until its session ends.
  static void put_off(Label& label, FileState& file) {
    if (label.is_pending) return;
    label.is_pending = true;
    file.labels.push_back(&label);
  }
  void settle(FileState& file, bool is_written_now) {
    file.is_written = is_written_now;
    if (file.labels.empty()) return;
    for (Label* label : file.labels) {
      if (is_written_now) label->account.kept.add(label->pending);
      label->pending = {};
      label->is_pending = false;
    }
    file.labels.clear();
    if (is_written_now) {
      file.account.kept.add(file.pending);
      whole_.kept.add(file.pending_of_rank);
    } else {
      ++file.dropped;
    }
    file.pending = file.pending_of_rank = {};
  }
  // Calls take(account, sums): the lines that something on a label is part of, and their sums.
  template <class Take>
  void each_of(Label& label, FileState& file, Take take) {
    const bool is_pending = !file.labels.empty();
    if (is_pending) put_off(label, file);
    take(label.account, is_pending ? label.pending : label.account.kept);
    take(file.account, is_pending ? file.pending : file.account.kept);
    take(whole_, is_pending ? file.pending_of_rank : whole_.kept);
  }

 private:
  const weir_reader_output& asked_;
  std::vector<Label*> labels_;
  std::vector<FileState*> files_;
  std::deque<Label> all_labels_;
  std::deque<FileState> all_files_;
  Account whole_;
};

// One rank's part of a weir_reader_growing. Timestamps mostly fall from question to question.
class Growing {
 public:
  Growing(const weir_reader_growing& all, uint32_t rank, const OutputInput& input)
      : all_(all), input_(input), first_(all.first_of[rank]), end_(all.first_of[rank + 1]),
        at_(end_) {}

  // In ns; the timestamps as of a Call.
  int64_t between(int64_t from, int64_t until) {
    if (first_ == end_ || until <= from) return 0;
    const int64_t later = until_then(ns(until));
    return later - until_then(ns(from));
  }

 private:
  int64_t until_then(int64_t time) {
    while (at_ > first_ && all_.at_ns[at_ - 1] > time) --at_;
    while (at_ < end_ && all_.at_ns[at_] <= time) ++at_;
    if (at_ == first_) return 0;
    const uint64_t point = at_ - 1;
    return all_.total_ns[point] + all_.slope[point] * (time - all_.at_ns[point]);
  }

  int64_t ns(int64_t ticks) const {
    return timestamp_ns(input_.clock, input_.index->header.created_ticks + uint64_t(ticks));
  }

  const weir_reader_growing& all_;
  const OutputInput& input_;
  const uint64_t first_, end_;
  uint64_t at_;  // the first point behind the timestamp asked for last
};

}  // namespace weir::reader
