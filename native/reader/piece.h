// SPDX-License-Identifier: Apache-2.0
// One chunk of records, handed out from its last end to its first.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "reader/active.h"
#include "reader/clock.h"
#include "reader/hidden.h"
#include "reader/ops.h"
#include "reader/record.h"

namespace weir::reader {

struct Interval {
  int64_t start, end;  // ns
};

// Intervals of all records of a chunk by rising end: of chunks whose ends fall back.
using Sorted = std::shared_ptr<const std::vector<Interval>>;

// A chunk and what of it counts.
class Source {
 public:
  // hidden: null when every name counts.
  Source(const ActiveInput& input, const weir_reader_chunk& chunk, const Hidden* hidden);

  uint32_t entries() const { return uint32_t(chunk_->entries); }
  bool has_times() const { return has_times_; }
  bool is_disordered() const { return has_times_ && chunk_->disordered != 0; }
  int64_t known_end() const { return timestamp_ns(clock_, chunk_->last_ticks); }

  // Whether the time of record i is known and in order with others (times.h), and its end in ns.
  bool is_timed(uint32_t i) const;
  int64_t end_of(uint32_t i) const { return timestamp_ns(clock_, record(i).end()); }

  // Hands the interval of each record that counts in [first, last) to `take`, in the order in which
  // they were made.
  template <class Take>
  void each(uint32_t first, uint32_t last, Take take) const {
    const weir_reader_clock clock = clock_;
    const char* at = first_ + uint64_t{first} * sizeof(Words);
    for (const char* end = first_ + uint64_t{last} * sizeof(Words); at != end;
         at += sizeof(Words)) {
      const Words record = Words::load(at);
      if (!counts(record)) continue;
      take(Interval{timestamp_ns(clock, record.start()), timestamp_ns(clock, record.end())});
    }
  }

  // Records [first, last) have been read, and those behind them before; so many chunks are being
  // read.
  void leave(uint32_t first, uint32_t last, size_t open_chunks) const;

 private:
  Words record(uint32_t i) const { return Words::load(first_ + uint64_t{i} * sizeof(Words)); }
  bool counts(const Words& record) const {
    return kIsIo[record.op()] && record.layer() <= uint8_t(wire::Layer::mpi) &&
           record.layer() != uint8_t(wire::Layer::fortran) &&
           (hidden_ == nullptr || !hidden_->hides(record.file()));
  }

  const Mapping* file_;
  const weir_reader_chunk* chunk_;
  const Hidden* hidden_;
  weir_reader_clock clock_;
  bool has_times_;
  const char* first_;
};

// Records [first, last) of a chunk, or of its sorted intervals.
struct Range {
  const Source* source;
  Sorted sorted;
  uint32_t first, last;
};

class Piece {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

  explicit Piece(const Source& source);

  uint32_t left() const { return left_; }

  // The greatest end of the records that are left, no less than it before the piece is open;
  // kNever: none is left.
  int64_t last_end() const { return last_end_; }
  bool is_open() const { return is_open_; }
  void open();

  // How many of the records that are left end at or before `from`, and those made before them.
  // before: it is open.
  uint32_t until(int64_t from) const;

  // What is left but `first` records.
  Range take_down_to(uint32_t first);

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  bool is_timed(uint32_t i) const { return sorted_ != nullptr || source_.is_timed(i); }
  int64_t end_of(uint32_t i) const {
    return sorted_ != nullptr ? (*sorted_)[i].end : source_.end_of(i);
  }
  uint32_t last_timed(uint32_t least, uint32_t from) const;
  void trim();

  Source source_;
  Sorted sorted_;
  uint32_t left_;
  uint32_t step_ = 64;  // about as many records as were taken last
  bool is_open_ = false;
  int64_t last_end_ = kNever;
};

}  // namespace weir::reader
