// SPDX-License-Identifier: Apache-2.0
#include "reader/tiles.h"

#include <algorithm>

#include "reader/clock.h"
#include "reader/ops.h"
#include "reader/record.h"

namespace weir::reader {
namespace {

// The group of each file id of a process. Ids are small numbers without gaps unless a file is damaged.
class Groups {
 public:
  static constexpr uint8_t kHidden = 255;

  Groups(const Names& names, uint32_t process, const uint8_t* group_of, bool all_names) {
    names.each(process, [&](uint32_t id, uint32_t text) {
      if (id >= kDense) return;
      if (id >= of_.size()) of_.resize(id + 1, kUnset);
      const bool is_shown = all_names || names.texts[text].is_file != 0;
      if (of_[id] == kUnset) of_[id] = !is_shown ? kHidden : group_of == nullptr ? uint8_t{0} : group_of[text];
    });
    std::replace(of_.begin(), of_.end(), kUnset, uint8_t{0});
  }

  uint8_t of(uint32_t id) const { return id < of_.size() ? of_[id] : uint8_t{0}; }

 private:
  static constexpr uint8_t kUnset = 254;
  static constexpr uint32_t kDense = 1 << 20;
  std::vector<uint8_t> of_;
};

enum : unsigned { kReads, kWrites, kOthers };

constexpr unsigned kind_of(char op_class) { return op_class == 'R' ? kReads : op_class == 'W' ? kWrites : kOthers; }

// What a task waits in: MPI_awaited tells of a wait once more, and starting a collective waits for nobody.
constexpr bool is_wait(uint8_t op) {
  return op >= uint8_t(wire::Op::kMpiCollective) && op <= uint8_t(wire::Op::kMpiSend) && op != uint8_t(wire::Op::kMpiStartCollective);
}

// One record, in ns since the window began.
struct Span {
  int64_t from, until;
  uint64_t bytes;
  unsigned kind;
  bool is_call, is_own;  // made by the application itself; within no other record of its thread
};

// Bytes moved before `at`, when they move evenly: differences of it add up to all of them.
uint64_t moved_before(const Span& span, int64_t at) {
  const auto whole = static_cast<unsigned __int128>(span.bytes) * static_cast<uint64_t>(at - span.from);
  return static_cast<uint64_t>(whole / static_cast<uint64_t>(span.until - span.from));
}

class Row {
 public:
  Row(weir_reader_tile* tiles, const weir_reader_window& window) : tiles_(tiles), shift_(window.shift), bins_(int64_t(window.bins)) {}

  void wait(int64_t from, int64_t until) const {
    const int64_t last = std::min(until >> shift_, bins_ - 1);
    for (int64_t bin = std::max<int64_t>(from >> shift_, 0); bin <= last; ++bin) {
      const int64_t begin = std::max(from, bin << shift_), end = std::min(until, (bin + 1) << shift_);
      if (end > begin) tiles_[bin].waiting_ns += uint64_t(end - begin);
    }
  }

  void add(const Span& span) const {
    const int64_t first = span.from >> shift_, last = span.until >> shift_;
    if (first >= 0 && first < bins_) {
      weir_reader_tile& tile = tiles_[first];
      tile.calls[span.kind] += span.is_call;
      if (last == first) {
        if (span.is_own) tile.busy_ns[span.kind] += uint64_t(span.until - span.from);
        if (span.kind != kOthers) tile.bytes[span.kind] += span.bytes;
        return;
      }
    }
    if (last > first) spread(span, std::max<int64_t>(first, 0), std::min(last, bins_ - 1));
  }

 private:
  void spread(const Span& span, int64_t first, int64_t last) const {
    for (int64_t bin = first; bin <= last; ++bin) {
      const int64_t from = std::max(span.from, bin << shift_), until = std::min(span.until, (bin + 1) << shift_);
      if (span.is_own) tiles_[bin].busy_ns[span.kind] += uint64_t(until - from);
      if (span.bytes != 0) tiles_[bin].bytes[span.kind] += moved_before(span, until) - moved_before(span, from);
    }
  }

  weir_reader_tile* tiles_;
  uint32_t shift_;
  int64_t bins_;
};

class Maker {
 public:
  Maker(const weir_reader_window& window, bool all_names, weir_reader_tile* by_row, weir_reader_tile* by_group)
      : window_(window), all_names_(all_names), by_row_(by_row), by_group_(by_group) {}

  void file(const TilesInput& input) const {
    std::vector<Groups> groups;
    for (uint32_t p = 0; p < input.index->processes.size(); ++p) {
      groups.emplace_back(*input.names, p, input.group_of, all_names_);
    }
    for (const auto& chunk : input.index->chunks) {
      if (chunk.kind != uint32_t(wire::Kind::kEvents) || chunk.first_ticks > chunk.last_ticks) continue;
      const uint32_t row = input.row_of[chunk.process];
      if (row >= window_.rows) continue;
      records(input, chunk, groups[chunk.process], row);
      input.file->leave(chunk.offset, chunk.size_bytes);
    }
  }

 private:
  void records(const TilesInput& input, const weir_reader_chunk& chunk, const Groups& groups, uint32_t row) const {
    const Row of_tasks(by_row_ + row * window_.bins, window_);
    const uint64_t created = input.index->header.created_ticks;
    const char* at = input.file->data() + chunk.offset + sizeof(wire::ChunkHeader);
    for (uint64_t i = 0; i < chunk.entries; ++i, at += sizeof(Words)) {
      const Words record = Words::load(at);
      if (is_wait(record.op())) {
        wait(input.clock, record, created, of_tasks);
        continue;
      }
      if (!kIsIo[record.op()] || record.layer() > uint8_t(wire::Layer::mpi)) continue;
      const uint8_t group = groups.of(record.file());
      if (group == Groups::kHidden || !plausible_time(record.start(), created)) continue;
      const Span span = span_of(input.clock, record);
      of_tasks.add(span);
      if (group < window_.groups) Row(by_group_ + group * window_.bins, window_).add(span);
    }
  }

  void wait(const weir_reader_clock& clock, const Words& record, uint64_t created, const Row& of_tasks) const {
    if (record.layer() != uint8_t(wire::Layer::mpi) || (record.flags() & wire::kNested) != 0) return;
    if (!plausible_time(record.start(), created)) return;
    of_tasks.wait(since(instant_ns(clock, record.start())), since(instant_ns(clock, record.end())));
  }

  Span span_of(const weir_reader_clock& clock, const Words& record) const {
    const unsigned kind = kind_of(kOps[record.op()].op_class);
    const bool is_lowest = record.layer() == uint8_t(wire::Layer::posix) || record.layer() == uint8_t(wire::Layer::stdio);
    const bool moves = kind != kOthers && is_lowest && (record.flags() & wire::kError) == 0;
    return {since(instant_ns(clock, record.start())), since(instant_ns(clock, record.end())), moves ? record.size() : 0, kind,
            (record.flags() & wire::kBelow) == 0, (record.flags() & wire::kNested) == 0};
  }

  // Unsigned, because a damaged clock may carry times around.
  int64_t since(int64_t ns) const { return int64_t(uint64_t(ns) - uint64_t(window_.origin_ns)); }

  const weir_reader_window& window_;
  bool all_names_;
  weir_reader_tile* by_row_;
  weir_reader_tile* by_group_;
};

}  // namespace

void make_tiles(const std::vector<TilesInput>& inputs, bool all_names, const weir_reader_window& window,
                weir_reader_tile* by_row, weir_reader_tile* by_group) {
  const Maker maker(window, all_names, by_row, by_group);
  for (const TilesInput& input : inputs) maker.file(input);
}

}  // namespace weir::reader
