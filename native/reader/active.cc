// SPDX-License-Identifier: Apache-2.0
#include "reader/active.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "reader/clock.h"
#include "reader/ops.h"
#include "reader/parallel.h"
#include "reader/record.h"

namespace weir::reader {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

struct Interval {
  int64_t start, end;
  bool is_counted = true;
};

// A stretch of time that one thread merges: what ends after `from`, cut at both sides. A record counts where it ends.
struct Window {
  int64_t from = kNever, until = std::numeric_limits<int64_t>::max();
};

// Which ids of a process are not files. Almost always a handful of small numbers.
class Hidden {
 public:
  Hidden(const Names& names, uint32_t process) {
    names.each(process, [&](uint32_t id, uint32_t text) {
      if (names.texts[text].is_file == 0) ids_.push_back(id);
    });
    std::sort(ids_.begin(), ids_.end());
    for (uint32_t id : ids_) {
      if (id < kDense) dense_.resize(std::max<size_t>(dense_.size(), id + 1));
    }
    for (uint32_t id : ids_) {
      if (id < kDense) dense_[id] = 1;
    }
  }

  bool hides(uint32_t id) const {
    if (id < dense_.size()) return dense_[id] != 0;
    return id >= kDense && std::binary_search(ids_.begin(), ids_.end(), id);
  }

 private:
  static constexpr uint32_t kDense = 1 << 20;
  std::vector<uint32_t> ids_;
  std::vector<uint8_t> dense_;
};

// A chunk before it enters the merge.
struct Waiting {
  int64_t first_start, last_end;
  const ActiveInput* input;
  const weir_reader_chunk* chunk;
  const Hidden* hidden;  // null: every name counts
};

// One chunk, backwards: intervals by falling end.
class Stream {
 public:
  Stream(const Waiting& from, const Window& window)
      : file_(*from.input->file),
        window_(window),
        first_(from.input->file->data() + from.chunk->offset + sizeof(wire::ChunkHeader)),
        at_(first_ + from.chunk->entries * sizeof(Words)),
        end_(place()),
        created_(from.input->index->header.created_ticks),
        clock_(from.input->clock),
        hidden_(from.hidden),
        is_disordered_(from.chunk->disordered != 0) {
    if (is_disordered_) sort();
    next();
  }

  Interval head;  // end kNever: exhausted

  bool next() {
    if (is_sorted_) {
      head = copy_.empty() ? Interval{0, kNever} : copy_.back();
      if (!copy_.empty()) copy_.pop_back();
      return head.end != kNever;
    }
    while (at_ != first_) {
      at_ -= sizeof(Words);
      if (place() % kLeftBytes == 0) file_.leave(place(), end_ - place());
      const Words record = Words::load(at_);
      if (!kIsIo[record.op()] || record.layer() > uint8_t(wire::Layer::mpi)) continue;
      if (hidden_ != nullptr && hidden_->hides(record.file())) continue;
      if (!plausible_time(record.start(), created_)) continue;
      const int64_t start = instant_ns(clock_, record.start()), end = instant_ns(clock_, record.end());
      if (end <= window_.from) {
        if (is_disordered_) continue;
        break;
      }
      if (end > window_.until && start >= window_.until) continue;
      head = {std::max(start, window_.from), std::min(end, window_.until), end <= window_.until};
      return true;
    }
    file_.leave(std::max(place(), kFolioBytes) - kFolioBytes, end_ - place() + 2 * kFolioBytes);
    head = {0, kNever};
    return false;
  }

 private:
  void sort() {
    std::vector<Interval> copy;
    while (next()) copy.push_back(head);
    std::sort(copy.begin(), copy.end(), [](const Interval& a, const Interval& b) { return a.end < b.end; });
    copy_ = std::move(copy);
    is_sorted_ = true;
  }

  uint64_t place() const { return uint64_t(at_ - file_.data()); }

  static constexpr uint64_t kLeftBytes = 128 << 10;   // of as many chunks as there are threads at once
  static constexpr uint64_t kFolioBytes = 2 << 20;    // the kernel may map so much around a byte that is read

  const Mapping& file_;
  const Window window_;
  const char* first_;
  const char* at_;
  uint64_t end_;  // of the records in the file
  uint64_t created_;
  weir_reader_clock clock_;
  const Hidden* hidden_;
  bool is_disordered_, is_sorted_ = false;
  std::vector<Interval> copy_;
};

class Merge {
 public:
  Merge(std::vector<Waiting> waiting, const Window& window) : waiting_(std::move(waiting)), window_(window) {
    // Rising, so that the next one to enter is at the back.
    std::sort(waiting_.begin(), waiting_.end(), [](const auto& a, const auto& b) { return a.last_end < b.last_end; });
  }

  Active run() {
    while (true) {
      while (!waiting_.empty() && (heap_.empty() || waiting_.back().last_end >= heap_.front().end)) enter();
      if (heap_.empty()) break;
      lead();
    }
    if (!result_.is_empty) close();
    return result_;
  }

 private:
  struct Entry {
    int64_t end;  // of the stream's head, here to spare a miss
    std::unique_ptr<Stream> stream;
  };

  static bool earlier(const Entry& a, const Entry& b) { return a.end < b.end; }

  void enter() {
    auto stream = std::make_unique<Stream>(waiting_.back(), window_);
    waiting_.pop_back();
    if (stream->head.end == kNever) return;
    heap_.push_back({stream->head.end, std::move(stream)});
    std::push_heap(heap_.begin(), heap_.end(), earlier);
  }

  // Drain the stream with the greatest end as far as it decides alone: while its records touch the interval being built
  // (then their order against other streams cannot matter), or end after every other stream and every waiting chunk.
  void lead() {
    Stream& stream = *heap_.front().stream;
    const int64_t others = greatest_other();
    do {
      take(stream.head);
      stream.next();
    } while (stream.head.end != kNever && (stream.head.end >= low_ || stream.head.end >= others));
    heap_.front().end = stream.head.end;
    sift();
  }

  int64_t greatest_other() const {
    int64_t greatest = waiting_.empty() ? kNever : waiting_.back().last_end;
    for (size_t child = 1; child <= 2 && child < heap_.size(); ++child) {
      greatest = std::max(greatest, heap_[child].end);
    }
    return greatest;
  }

  void take(const Interval& interval) {
    result_.records += interval.is_counted;
    if (result_.is_empty) {
      result_.is_empty = false;
      low_ = interval.start;
      high_ = result_.last_ns = interval.end;
    } else if (interval.end < low_) {
      close();
      low_ = interval.start;
      high_ = interval.end;
    } else {
      low_ = std::min(low_, interval.start);
    }
  }

  void close() {
    result_.total_ns += high_ - low_;
    result_.first_ns = low_;
  }

  // The front's end has fallen: put it where it belongs, or take it out.
  void sift() {
    if (heap_.front().end == kNever) {
      heap_.front() = std::move(heap_.back());
      heap_.pop_back();
    }
    const size_t count = heap_.size();
    for (size_t at = 0, child = 1; child < count; child = 2 * at + 1) {
      if (child + 1 < count && earlier(heap_[child], heap_[child + 1])) ++child;
      if (!earlier(heap_[at], heap_[child])) return;
      std::swap(heap_[at], heap_[child]);
      at = child;
    }
  }

  std::vector<Waiting> waiting_;
  const Window window_;
  std::vector<Entry> heap_;  // greatest end in front
  int64_t low_ = 0, high_ = 0;   // the interval being built; all that ends at or above low_ belongs to it
  Active result_;
};

std::vector<Waiting> all_chunks(const std::vector<ActiveInput>& inputs, bool all_names, const std::vector<std::vector<Hidden>>& hidden) {
  std::vector<Waiting> waiting;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ActiveInput& input = inputs[i];
    for (const auto& chunk : input.index->chunks) {
      if (chunk.kind != uint32_t(wire::Kind::kEvents) || chunk.first_ticks > chunk.last_ticks) continue;
      if (input.mask != nullptr && input.mask[chunk.process] == 0) continue;
      waiting.push_back({instant_ns(input.clock, chunk.first_ticks), instant_ns(input.clock, chunk.last_ticks), &input, &chunk,
                         all_names ? nullptr : &hidden[i][chunk.process]});
    }
  }
  return waiting;
}

// Stretches of time with about as many chunks in each.
std::vector<Window> windows_over(const std::vector<Waiting>& waiting, size_t count) {
  std::vector<int64_t> ends;
  for (const Waiting& one : waiting) ends.push_back(one.last_end);
  std::sort(ends.begin(), ends.end());
  std::vector<Window> windows(1);
  for (size_t i = 1; i < count; ++i) {
    const int64_t cut = ends[ends.size() * i / count];
    if (cut <= windows.back().from) continue;
    windows.back().until = cut;
    windows.push_back({cut, Window{}.until});
  }
  return windows;
}

Active merged(const std::vector<Waiting>& all, const Window& window) {
  std::vector<Waiting> waiting;
  for (const Waiting& one : all) {
    if (one.last_end > window.from && one.first_start <= window.until) waiting.push_back(one);
  }
  return Merge(std::move(waiting), window).run();
}

}  // namespace

Active active_time(const std::vector<ActiveInput>& inputs, bool all_names, unsigned threads) {
  std::vector<std::vector<Hidden>> hidden(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (uint32_t p = 0; p < inputs[i].index->processes.size(); ++p) hidden[i].emplace_back(*inputs[i].names, p);
  }
  const std::vector<Waiting> all = all_chunks(inputs, all_names, hidden);
  const std::vector<Window> windows = windows_over(all, std::min<size_t>(std::max(threads, 1u), all.size()));
  std::vector<Active> parts(windows.size());
  in_parallel(windows.size(), [&](size_t i) { parts[i] = merged(all, windows[i]); });
  Active sum;
  for (const Active& part : parts) {
    if (part.is_empty) continue;
    if (sum.is_empty) sum.first_ns = part.first_ns;
    sum = {sum.total_ns + part.total_ns, sum.first_ns, part.last_ns, sum.records + part.records, false};
  }
  return sum;
}

}  // namespace weir::reader
