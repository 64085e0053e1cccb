// SPDX-License-Identifier: Apache-2.0
#include "reader/step_accesses.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "reader/accesses.h"
#include "reader/clock.h"
#include "reader/handle.h"
#include "reader/parallel.h"

namespace weir::reader {
namespace {

constexpr int32_t kNoName = -1;
// Trace files that are read before those in front of them are joined. The same on all machines:
// what is found of a file may depend on those that were joined so long before it.
constexpr size_t kAhead = 8;

constexpr uint64_t kMostNs = uint64_t{1} << 62;  // as in python/weir/analysis/clock.py

using Row = weir_accesses_row;

void merge(Row& into, const Row& one) {
  for (int64_t Row::*figure :
       {&Row::calls, &Row::bytes, &Row::sequential, &Row::consecutive, &Row::first, &Row::adjacent,
        &Row::strided, &Row::backward, &Row::random, &Row::unknown, &Row::off_block,
        &Row::off_stripe, &Row::ns, &Row::again, &Row::switches})
    add_to(into.*figure, one.*figure);
  into.begin = std::min(into.begin, one.begin);
  into.end = std::max(into.end, one.end);
  into.longest_ns = std::max(into.longest_ns, one.longest_ns);
}

// The place of a row among others, where it is added up, or behind them.
template <class Rows>
void fold(Rows& rows, PlaceTable& places, const Row& one) {
  const uint32_t next = uint32_t(rows.size());
  const uint32_t place =
      places.find_or_add(hash_of(uint64_t(uint32_t(one.name)), uint64_t(one.way)), next,
                         [&](uint32_t at) {
                           return rows[at].name == one.name && rows[at].way == one.way;
                         });
  if (place == next) rows.push_back(one);
  else merge(rows[place], one);
}

// The accesses of one trace file as rows.
class OfFile {
 public:
  OfFile(const weir_accesses_file& file, int32_t node, const weir_accesses_choice& choice)
      : file_(file),
        node_(node),
        by_rank_(choice.by_rank != 0),
        made_{{},
              SpreadOfFile({choice.apart, choice.apart_count}, {choice.loose, choice.loose_count}),
              {},
              {},
              {}} {}

  // Nothing where a name is lost of which no number is known.
  std::optional<FileAccesses> of(Accesses found) {
    for (const weir_reader_access& one : found.files) {
      const std::optional<int32_t> name = name_of(one);
      if (!name) return std::nullopt;
      made_.names.push_back(*name);
    }
    for (size_t way : {0, 1}) {
      if (by_rank_) made_.places[way].resize(found.files.size());
      for (size_t i = 0; i < found.files.size(); ++i) {
        if (found.files[i].calls[way] == 0) continue;
        if (by_rank_) made_.places[way][i] = int64_t(made_.rows.size());
        take(row_of(found.files[i], way, made_.names[i]));
      }
    }
    made_.spread.add(spread_);
    made_.common = std::move(found.common);
    return std::move(made_);
  }

 private:
  std::optional<int32_t> name_of(const weir_reader_access& one) const {
    const uint32_t text = text_of(one);
    if (text != Names::kLost) return file_.names[text];
    if (one.file == 0) return kNoName;
    const std::span lost(file_.lost, file_.lost_count);
    const auto is_before = [](const weir_accesses_lost& a, const weir_reader_access& b) {
      return std::tie(a.process, a.file) < std::tie(b.process, b.file);
    };
    const auto found = std::lower_bound(lost.begin(), lost.end(), one, is_before);
    if (found == lost.end() || found->process != one.process || found->file != one.file)
      return std::nullopt;
    return found->name;
  }

  uint32_t text_of(const weir_reader_access& one) const {
    return file_.reader->names.text_of(one.process, one.file);
  }

  Row row_of(const weir_reader_access& one, size_t way, int32_t name) const {
    const uint32_t text = text_of(one);
    const auto alignment = text == Names::kLost ? kLostAlignment : file_.alignment[text];
    const auto ns = [&](uint64_t ticks) {
      return int64_t(std::min(length_ns(file_.clock, ticks), kMostNs));
    };
    Row row = {
        .calls = int64_t(one.calls[way]),
        .bytes = int64_t(one.bytes[way]),
        .sequential = int64_t(one.sequential[way]),
        .consecutive = int64_t(one.consecutive[way]),
        .first = int64_t(one.first[way]),
        .adjacent = int64_t(one.adjacent[way]),
        .strided = int64_t(one.strided[way]),
        .backward = int64_t(one.backward[way]),
        .random = int64_t(one.random[way]),
        .unknown = int64_t(one.unknown[way]),
        .off_block = int64_t(one.off_block[way]),
        .off_stripe = int64_t(one.off_stripe[way]),
        .ns = ns(one.ticks[way]),
        .again = 0,
        .switches = int64_t(one.switches),
        .begin = int64_t(one.begin[way]),
        .end = int64_t(one.end[way]),
        .longest_ns = ns(one.longest_ticks[way]),
        .block = alignment.block_bytes,
        .stripe = alignment.stripe_bytes,
        .name = name,
        .rank = file_.ranks[one.process],
        .way = int32_t(way),
        .node = node_,
    };
    const int64_t again = int64_t(one.bytes[way] - (one.end[way] - one.begin[way]));
    if (row.unknown == 0) row.again = std::max<int64_t>(again, 0);
    return row;
  }

  void take(const Row& row) {
    if (by_rank_) return made_.rows.push_back(row);
    spread_.push_back({row.ns, row.bytes, row.begin, row.end, row.name, row.way, row.rank, row.node,
                       0, 0});
    fold(made_.rows, places_, row);
  }

  const weir_accesses_file& file_;
  const int32_t node_;
  const bool by_rank_;
  FileAccesses made_;
  PlaceTable places_;
  std::vector<weir_spread_row> spread_;
};

// Which trace file is read next, and which is joined next: one after the other, whichever thread
// has read it.
class Turns {
 public:
  Turns(size_t files, StepAccesses& into) : files_(files), into_(into) {}

  // False when nothing is left. few: few common values are enough of it.
  bool next(size_t& file, bool& few) {
    std::unique_lock lock(mutex_);
    joined_one_.wait(lock, [&] { return is_over() || next_ < joined_ + kAhead; });
    if (is_over()) return false;
    file = next_++;
    few = file >= kAhead && full_from_ <= file - kAhead;
    return true;
  }

  void give(size_t file, FileAccesses found) {
    std::unique_lock lock(mutex_);
    waiting_.emplace(file, std::move(found));
    if (is_joining_) return;
    is_joining_ = true;
    while (!waiting_.empty() && waiting_.begin()->first == joined_) {
      const FileAccesses one = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      lock.unlock();
      into_.add(one);
      lock.lock();
      if (into_.takes_few()) full_from_ = std::min(full_from_, joined_);
      ++joined_;
      joined_one_.notify_all();
    }
    is_joining_ = false;
  }

  // Nothing more is read.
  void give_up() {
    const std::lock_guard lock(mutex_);
    is_given_up_ = true;
    joined_one_.notify_all();
  }

  bool is_whole() const { return joined_ == files_; }

 private:
  bool is_over() const { return is_given_up_ || next_ == files_; }

  const size_t files_;
  StepAccesses& into_;
  std::mutex mutex_;
  std::condition_variable joined_one_;
  std::map<size_t, FileAccesses> waiting_;
  size_t next_ = 0, joined_ = 0;
  size_t full_from_ = std::numeric_limits<size_t>::max();  // the file with which few were enough
  bool is_joining_ = false, is_given_up_ = false;
};

AccessChoice choice_of(const weir_accesses_file& file, const weir_accesses_choice& choice,
                       bool few) {
  return {{file.chosen, file.reader->index.processes.size()},
          choice.all_names != 0,
          choice.by_rank != 0 ? AccessCommons::by_process
          : few               ? AccessCommons::few_by_text
                              : AccessCommons::by_text};
}

std::optional<FileAccesses> read(const weir_accesses_file& file, size_t node,
                                 const weir_accesses_choice& choice, bool few, unsigned threads) {
  const weir_reader& reader = *file.reader;
  Accesses found =
      find_accesses(reader.file, reader.index, reader.names,
                    {file.alignment, reader.names.texts.size()}, choice_of(file, choice, few),
                    threads);
  reader.file.leave(0, reader.file.size());
  return OfFile(file, int32_t(node), choice).of(std::move(found));
}

}  // namespace

StepAccesses::StepAccesses(const weir_accesses_choice& choice)
    : by_rank_(choice.by_rank != 0),
      values_({choice.most_values, choice.added_at_once, {choice.kept[0], choice.kept[1]}}) {}

void StepAccesses::add(const FileAccesses& one) {
  if (by_rank_) {
    add_common_of_rows(one);
    rows_.insert(rows_.end(), one.rows.begin(), one.rows.end());
    return;
  }
  for (const Row& row : one.rows) fold(rows_, places_, row);
  for (uint32_t way : {0, 1}) values_.add(one.common, one.names, way);
  for (const weir_spread_file& of : one.spread.files()) spread_.join(of);
  kept_.insert(kept_.end(), one.spread.kept().begin(), one.spread.kept().end());
}

void StepAccesses::add_common_of_rows(const FileAccesses& one) {
  const int64_t before = int64_t(rows_.size());
  for (uint32_t way : {0, 1}) {
    for (const weir_reader_common& row : one.common) {
      if (way_of(row) != way) continue;
      common_.push_back({before + one.places[way][row.file], is_stride(row), signed_value(row),
                         int64_t(row.count)});
    }
  }
}

void StepAccesses::finish() {
  if (!by_rank_) common_ = values_.take();
}

bool read_accesses(std::span<const weir_accesses_file> files, const weir_accesses_choice& choice,
                   StepAccesses& into) {
  const size_t threads = std::max(choice.threads, 1u);
  const unsigned of_file = files.size() < 2 * threads ? unsigned(threads) : 1;
  Turns turns(files.size(), into);
  in_parallel(std::min(threads, files.size()), [&](size_t) {
    try {
      bool few = false;
      for (size_t i; turns.next(i, few);) {
        auto found = read(files[i], i, choice, few, of_file);
        if (!found) return turns.give_up();
        turns.give(i, std::move(*found));
      }
    } catch (...) {
      turns.give_up();
      throw;
    }
  });
  if (!turns.is_whole()) return false;
  into.finish();
  return true;
}

}  // namespace weir::reader

struct weir_accesses {
  weir::reader::StepAccesses of;
};

using weir::reader::guarded;

namespace {

template <class List>
auto hand_out(const List& list, uint64_t* count) {
  *count = list.size();
  return list.data();
}

}  // namespace

WEIR_API weir_accesses* weir_accesses_create(const weir_accesses_file* files, uint64_t count,
                                             const weir_accesses_choice* choice,
                                             uint32_t* has_lost) {
  std::unique_ptr<weir_accesses> made;
  *has_lost = 0;
  const int failed = guarded([&] {
    made = std::make_unique<weir_accesses>(weir::reader::StepAccesses(*choice));
    *has_lost = !weir::reader::read_accesses({files, count}, *choice, made->of);
  });
  return failed == 0 ? made.release() : nullptr;
}

WEIR_API void weir_accesses_destroy(weir_accesses** accesses) {
  delete *accesses;
  *accesses = nullptr;
}

WEIR_API const weir_accesses_row* weir_accesses_rows(const weir_accesses* accesses,
                                                     uint64_t* count) {
  return hand_out(accesses->of.rows(), count);
}

WEIR_API const weir_accesses_common* weir_accesses_commons(const weir_accesses* accesses,
                                                           uint64_t* count) {
  return hand_out(accesses->of.common(), count);
}

WEIR_API const weir_spread_file* weir_accesses_spread(const weir_accesses* accesses,
                                                      uint64_t* count) {
  return hand_out(accesses->of.spread().files(), count);
}

WEIR_API const weir_spread_row* weir_accesses_kept(const weir_accesses* accesses,
                                                   uint64_t* count) {
  return hand_out(accesses->of.kept(), count);
}
