// SPDX-License-Identifier: Apache-2.0
// The calls of a rank that matter for the cost of output, from the last to the first: what each of
// them is, and which file or variable it is about.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "reader/names.h"
#include "reader/ops.h"
#include "reader/record.h"
#include "reader/weir_output_cost.h"

namespace weir::reader {

struct Call {
  enum Kind : uint8_t {
    kNothing,
    kForeign,  // I/O that is no output, whatever file it is on
    kRead, kWrite, kDefine, kCreate, kOpen, kClose,
    kTend,  // what is done with an open file beside: seek, flush, size, status
    kCollects, kWaits, kReceived, kNeutral, kUnrelated,  // of MPI (output_gaps.h)
  };
  enum Level : uint8_t { kSystem, kMpiIo, kLibrary, kEngine };  // the last one: libweir
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint64_t kUnknown = ~uint64_t{0};

  int64_t begin, end;  // ticks since the file was made
  uint64_t bytes;      // of MPI: what the rank has received with it, where that is known
  uint32_t label;      // kNone: of no output; of MPI: who sent it, kNone where that is no one rank
  Kind kind;
  Level level;
  bool is_nested;  // its time lies within another record of its thread

  bool writes() const { return kind == kWrite || kind == kDefine || kind == kCreate; }
};

// What output costs are asked for, of one trace file.
struct OutputInput {
  const Mapping* file;
  const Index* index;
  const Names* names;
  weir_reader_clock clock;
  const weir_reader_output* asked;
};

// What the ids of a process are names of.
class Meanings {
 public:
  struct Meaning {
    uint32_t label, members;  // as of weir_reader_output
    uint32_t cuts;            // of its text
    bool is_hidden;           // no file
    uint64_t first_cut;
  };

  Meanings(const OutputInput& input, uint32_t process);
  const Meaning& of(uint32_t id) const {
    const std::vector<Meaning>& of_half = of_[id >> 31];
    return (id & kMask) < of_half.size() ? of_half[id & kMask] : kLost;
  }
  // The label of a name at a timestamp (ticks).
  uint32_t label_of(const Meaning& name, uint64_t ticks) const;

 private:
  static constexpr Meaning kLost{Call::kNone, 0, 0, false, 0};
  static constexpr uint32_t kMask = ~uint32_t{0} >> 1;
  const OutputInput& input_;
  std::vector<Meaning> of_[2];  // ids count up from 0, and from the middle
};

// One log of a process, read backwards: a chunk is in memory at a time. chunks: those with calls
// (times.h).
class Log {
 public:
  Log(const OutputInput& input, uint32_t process, std::vector<const weir_reader_chunk*> chunks);

  bool is_left() const { return !calls_.empty() || !chunks_.empty(); }
  // No less than the end of the next call. before: something is left.
  int64_t end() const { return calls_.empty() ? end_of_chunk() : calls_.back().end; }
  // Hands over the calls down to an end, or all of the chunk at hand, which it reads first.
  template <class Take>
  void take_until(int64_t end, Take& take) {
    if (calls_.empty()) read();
    size_t left = calls_.size();
    for (; left != 0 && calls_[left - 1].end >= end; --left) take(calls_[left - 1]);
    calls_.resize(left);
    if (!is_left()) calls_.shrink_to_fit(), meanings_.reset();
  }

 private:
  int64_t end_of_chunk() const;
  void read();

  const OutputInput* input_;
  uint32_t process_;
  std::optional<Meanings> meanings_;  // while it is read
  std::vector<const weir_reader_chunk*> chunks_;  // by falling sequence: the next one is the last
  std::vector<Call> calls_;
};

// Calls by falling end, of all logs of a rank: take(call, place of its log).
template <class Take>
void each_call(std::vector<Log>& logs, Take take) {
  struct Head {
    int64_t end;
    Log* log;
    bool operator<(const Head& other) const { return end < other.end; }
  };
  std::vector<Head> heap;
  for (Log& log : logs) {
    if (log.is_left()) heap.push_back({log.end(), &log});
  }
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    Log& log = *heap.back().log;
    const int64_t others = heap.size() == 1 ? INT64_MIN : heap.front().end;
    auto of_log = [&, place = size_t(&log - logs.data())](const Call& call) { take(call, place); };
    log.take_until(others, of_log);
    if (!log.is_left()) {
      heap.pop_back();
    } else {
      heap.back().end = log.end();
      std::push_heap(heap.begin(), heap.end());
    }
  }
}

}  // namespace weir::reader
