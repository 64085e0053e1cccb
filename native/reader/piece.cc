// SPDX-License-Identifier: Apache-2.0
#include "reader/piece.h"

#include "base/round.h"
#include "reader/times.h"

namespace weir::reader {
namespace {

constexpr uint64_t kLeastLeftBytes = 128 << 10;  // less is not worth a call of the system
constexpr uint64_t kMappedBytes = 32 << 20;      // of all chunks that are open, but for that least

}  // namespace

Source::Source(const ActiveInput& input, const weir_reader_chunk& chunk, const Hidden* hidden)
    : file_(input.file),
      chunk_(&chunk),
      hidden_(hidden),
      clock_(input.clock),
      has_times_(input.index->has_times),
      first_(input.file->records(chunk.offset)) {}

bool Source::is_timed(uint32_t i) const { return is_timed_call(record(i)); }

void Source::leave(uint32_t first, uint32_t last, size_t open_chunks) const {
  const uint64_t begin = chunk_->offset + sizeof(wire::ChunkHeader),
                 from = begin + first * sizeof(Words), until = begin + last * sizeof(Words);
  if (first == 0) return file_->leave_around(from, until - from);
  const uint64_t at_once = std::max(kMappedBytes / open_chunks, kLeastLeftBytes);
  const uint64_t first_left = base::round_up(from, at_once),
                 end_left = base::round_up(until, at_once);
  if (first_left != end_left) file_->leave(first_left, end_left - first_left);
}

Piece::Piece(const Source& source) : source_(source), left_(source.entries()) {
  if (source_.has_times()) {
    last_end_ = source_.known_end();
  } else {
    trim();
    source_.leave(0, left_, 1);
  }
}

void Piece::open() {
  if (source_.is_disordered()) {
    std::vector<Interval> intervals;
    source_.each(0, source_.entries(), [&](const Interval& one) { intervals.push_back(one); });
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.end < b.end; });
    source_.leave(0, source_.entries(), 1);
    left_ = uint32_t(intervals.size());
    sorted_ = std::make_shared<const std::vector<Interval>>(std::move(intervals));
  }
  is_open_ = true;
  trim();
}

uint32_t Piece::last_timed(uint32_t least, uint32_t from) const {
  for (uint32_t i = from + 1; i-- > least;) {
    if (is_timed(i)) return i;
  }
  return kNone;
}

// Steps back, each twice as long, then halves: neighbours are near in memory, and a range is as
// long as the one before.
uint32_t Piece::until(int64_t from) const {
  uint32_t least = 0, most = left_;
  for (uint32_t step = step_; most > least; step *= 2) {
    const uint32_t probe = most - least > step ? most - step : least;
    const uint32_t timed = last_timed(least, probe);
    if (timed == kNone || end_of(timed) <= from) {
      least = probe + 1;
      break;
    }
    most = timed;
  }
  while (most > least) {
    const uint32_t middle = least + (most - least) / 2, timed = last_timed(least, middle);
    if (timed == kNone || end_of(timed) <= from) least = middle + 1;
    else most = timed;
  }
  return most;
}

Range Piece::take_down_to(uint32_t first) {
  const Range range = {&source_, sorted_, first, left_};
  step_ = std::max<uint32_t>(4, left_ - first);
  left_ = first;
  trim();
  return range;
}

void Piece::trim() {
  const uint32_t last = left_ == 0 ? kNone : last_timed(0, left_ - 1);
  left_ = last == kNone ? 0 : last + 1;
  last_end_ = last == kNone ? kNever : end_of(last);
  if (left_ == 0) sorted_ = nullptr;
}

}  // namespace weir::reader
