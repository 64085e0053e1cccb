// SPDX-License-Identifier: Apache-2.0
#include "reader/active.h"

#include <condition_variable>
#include <map>
#include <mutex>

#include "reader/active_by_file.h"
#include "reader/parallel.h"
#include "reader/stretch.h"
#include "reader/times.h"

namespace weir::reader {
namespace {

// Cuts time into stretches, from the last end to the first, of about as many records each.
class Cutter {
 public:
  explicit Cutter(std::vector<Piece>& pieces) {
    for (Piece& piece : pieces) put_back(piece);
  }

  // False when nothing is left.
  bool next(Stretch& stretch) {
    open_first();
    if (heap_.empty()) return false;
    stretch.number = number_++;
    stretch.until = heap_.front()->last_end();
    int64_t length = length_;
    uint64_t records = 0;
    take_after(before(stretch.until, length));
    while ((records = count_after(before(stretch.until, length))) > 4 * wanted() && length > 1) {
      length /= 2;
      leave_out(before(stretch.until, length));
    }
    stretch.from = before(stretch.until, length);
    for (auto& [piece, first] : taken_) {
      stretch.ranges.push_back(piece->take_down_to(first));
      put_back(*piece);
    }
    length_ = records < wanted() / 2   ? std::min(length * 2, Stretch::kLongest)
              : records > 2 * wanted() ? std::max<int64_t>(length / 2, 1)
                                       : length;
    return true;
  }

 private:
  struct Taken {
    Piece* piece;
    uint32_t first;  // record of the stretch
  };

  // Of a stretch: its keys stay in the second-level cache.
  static constexpr uint64_t kRecords = 8192;
  // At least, in the mean: finding them costs as much as some records.
  static constexpr uint64_t kOfPiece = 16;

  static bool ends_earlier(const Piece* a, const Piece* b) { return a->last_end() < b->last_end(); }

  static int64_t before(int64_t until, int64_t length) {
    return until > Piece::kNever + length ? until - length : Piece::kNever;
  }

  uint64_t wanted() const { return std::max<uint64_t>(kRecords, kOfPiece * taken_.size()); }

  void put_back(Piece& piece) {
    if (piece.last_end() == Piece::kNever) return;
    heap_.push_back(&piece);
    std::push_heap(heap_.begin(), heap_.end(), ends_earlier);
  }

  Piece& pop() {
    std::pop_heap(heap_.begin(), heap_.end(), ends_earlier);
    Piece& piece = *heap_.back();
    heap_.pop_back();
    return piece;
  }

  void open_first() {
    while (!heap_.empty() && !heap_.front()->is_open()) {
      Piece& piece = pop();
      piece.open();
      put_back(piece);
    }
  }

  void take_after(int64_t from) {
    taken_.clear();
    for (open_first(); !heap_.empty() && heap_.front()->last_end() > from; open_first())
      taken_.push_back({&pop(), 0});
  }

  uint64_t count_after(int64_t from) {
    uint64_t records = 0;
    for (auto& [piece, first] : taken_) {
      first = piece->until(from);
      records += piece->left() - first;
    }
    return records;
  }

  void leave_out(int64_t from) {
    for (size_t i = 0; i < taken_.size();) {
      if (taken_[i].piece->last_end() > from) {
        ++i;
      } else {
        put_back(*taken_[i].piece);
        taken_[i] = taken_.back();
        taken_.pop_back();
      }
    }
  }

  std::vector<Piece*> heap_;  // greatest end in front
  std::vector<Taken> taken_;  // in the stretch at hand
  size_t number_ = 0;
  int64_t length_ = 1 << 20;
};

// Adds up what is covered, from the last stretch to the first, whatever the order in which they
// come.
class Joining {
 public:
  // Waits while too many stretches behind this one are missing.
  void add(Stretch stretch, Covered covered) {
    std::unique_lock lock(mutex_);
    const size_t number = stretch.number;
    waiting_.emplace(number, Done{std::move(stretch), std::move(covered)});
    for (; !waiting_.empty() && waiting_.begin()->first == next_; ++next_) {
      join(waiting_.begin()->second.covered);
      waiting_.begin()->second.stretch.leave();
      waiting_.erase(waiting_.begin());
    }
    moved_.notify_all();
    moved_.wait(lock, [&] { return is_given_up_ || number < next_ + kMostWaiting; });
  }

  // Somebody failed: nobody waits any more.
  void give_up() {
    const std::lock_guard lock(mutex_);
    is_given_up_ = true;
    moved_.notify_all();
  }

  uint64_t strays() const { return strays_; }

  Active result() {
    cover(earliest_, reached_);
    return sum_;
  }

 private:
  static constexpr size_t kMostWaiting = 64;

  struct Done {
    Stretch stretch;
    Covered covered;
  };

  void cover(int64_t begin, int64_t end) {
    if (begin >= end) return;
    sum_.total_ns += end - begin;
  }

  // Some record that ends behind reached_ begins at earliest_: what lies between the two is
  // covered.
  void join(const Covered& covered) {
    strays_ += covered.strays;
    if (covered.records == 0) return;
    if (sum_.is_empty) {
      sum_ = {0, covered.first_ns, covered.from + covered.parts.back().end, 0, false};
      reached_ = covered.until;
    }
    // What of the stretch is not covered from behind.
    int64_t open_until = std::min(covered.until, reached_);
    const int64_t behind = std::max(earliest_, covered.from);
    if (behind < reached_) {
      cover(behind, reached_);
      open_until = std::min(open_until, behind);
    }
    for (const auto& part : covered.parts) {
      const int64_t begin = covered.from + part.begin,
                    end = std::min(covered.from + int64_t{part.end}, open_until);
      if (begin >= open_until) break;
      cover(begin, end);
    }
    reached_ = std::min(reached_, covered.from);
    earliest_ = std::min(earliest_, covered.first_ns);
    sum_.first_ns = earliest_;
    sum_.records += covered.records;
  }

  std::mutex mutex_;
  std::condition_variable moved_;
  std::map<size_t, Done> waiting_;  // by number of the stretch
  size_t next_ = 0;
  bool is_given_up_ = false;
  uint64_t strays_ = 0;
  // Where the last stretch that was added begins; least start.
  int64_t reached_ = Piece::kNever, earliest_ = std::numeric_limits<int64_t>::max();
  Active sum_;
};

void add_pieces(const ActiveInput& input, bool all_names, const HiddenNames& hidden,
                std::vector<Piece>& pieces) {
  each_counted_chunk(input, all_names, hidden, [&](const auto& chunk, const Hidden* names) {
    pieces.emplace_back(Source(input, chunk, names));
  });
}

void unite(Cutter& cutter, std::mutex& cutting, Joining& joining) {
  Union one;
  while (true) {
    Stretch stretch;
    {
      const std::lock_guard lock(cutting);
      if (!cutter.next(stretch)) return;
    }
    Covered covered = one.of(stretch);
    joining.add(std::move(stretch), std::move(covered));
  }
}

// strays: records that a chunk has out of order.
Active united(std::vector<Piece> pieces, unsigned threads, uint64_t& strays) {
  Cutter cutter(pieces);
  std::mutex cutting;
  Joining joining;
  in_parallel(std::max(threads, 1u), [&](size_t) {
    try {
      unite(cutter, cutting, joining);
    } catch (...) {
      joining.give_up();
      throw;
    }
  });
  strays = joining.strays();
  return joining.result();
}

// All files together, in the order of time.
Active together(const std::vector<ActiveInput>& inputs, bool all_names, unsigned threads) {
  std::vector<HiddenNames> hidden;
  for (const ActiveInput& one : inputs) hidden.push_back(hidden_of(one));
  const auto made = [&](uint64_t& strays) {
    std::vector<Piece> pieces;
    for (size_t i = 0; i < inputs.size(); ++i)
      add_pieces(inputs[i], all_names, hidden[i], pieces);
    return united(std::move(pieces), threads, strays);
  };
  uint64_t strays = 0;
  const Active active = made(strays);
  const bool is_known = std::all_of(inputs.begin(), inputs.end(),
                                    [](const ActiveInput& one) { return one.index->has_times; });
  if (strays == 0 || is_known)
    return active;  // strays of known chunks were written while they were being read
  for (const ActiveInput& one : inputs) find_times(*one.file, *one.index, threads);
  return made(strays);
}

}  // namespace

Active active_time(const std::vector<ActiveInput>& inputs, bool all_names, unsigned threads) {
  Active active;
  if (are_small(inputs) && active_by_file(inputs, all_names, threads, active)) return active;
  return together(inputs, all_names, threads);
}

}  // namespace weir::reader
