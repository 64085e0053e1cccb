// SPDX-License-Identifier: Apache-2.0
#include "reader/tiles.h"

#include <algorithm>
#include <atomic>

#include "reader/clock.h"
#include "reader/ops.h"
#include "reader/parallel.h"
#include "reader/record.h"
#include "reader/times.h"

namespace weir::reader {
namespace {

// The group of each file id of a process. Ids of files, and those of other names without their
// highest bit, are small numbers without gaps unless a file is damaged.
class Groups {
 public:
  static constexpr uint8_t kHidden = 255;

  Groups(const Names& names, uint32_t process, const uint8_t* group_of, bool all_names) {
    names.each(process, [&](uint32_t id, uint32_t text) {
      std::vector<uint8_t>& of = of_[id / wire::kOtherNames];
      const uint32_t place = id % wire::kOtherNames;
      if (place >= kDense) return;
      if (place >= of.size()) of.resize(place + 1, kUnset);
      const bool is_shown = all_names || names.texts[text].is_file != 0;
      if (of[place] == kUnset)
        of[place] = !is_shown ? kHidden : group_of == nullptr ? uint8_t{0} : group_of[text];
    });
    for (std::vector<uint8_t>& of : of_) std::replace(of.begin(), of.end(), kUnset, uint8_t{0});
  }

  uint8_t of(uint32_t id) const {
    const std::vector<uint8_t>& of = of_[id / wire::kOtherNames];
    const uint32_t place = id % wire::kOtherNames;
    return place < of.size() ? of[place] : uint8_t{0};
  }

 private:
  static constexpr uint8_t kUnset = 254;
  static constexpr uint32_t kDense = 1 << 20;
  std::array<std::vector<uint8_t>, 2> of_;  // files, other names
};

// What a rank waits in: MPI_awaited tells of a wait once more, and starting a collective waits for
// nobody.
constexpr bool is_wait(uint8_t op) {
  return op >= uint8_t(wire::Op::kMpiCollective) && op <= uint8_t(wire::Op::kMpiSend) &&
         op != uint8_t(wire::Op::kMpiStartCollective);
}

// What a tile makes of an operation; of I/O, the place in its arrays.
enum Kind : uint8_t { kReads, kWrites, kOthers, kWait, kNothing };

constexpr std::array<Kind, 256> kKinds = [] {
  std::array<Kind, 256> kinds{};
  for (size_t op = 0; op < 256; ++op) {
    const Kind io = kOps[op].op_class == 'R'   ? kReads
                    : kOps[op].op_class == 'W' ? kWrites
                                               : kOthers;
    kinds[op] = is_wait(uint8_t(op)) ? kWait : kIsIo[op] ? io : kNothing;
  }
  return kinds;
}();

// One record, in ns since the window began.
struct Span {
  int64_t from, until;
  uint64_t bytes;  // none of kOthers
  Kind kind;
  bool is_call, is_own;  // made by the application itself; within no other record of its thread
};

// Sums of spans of one slice.
struct Held {
  uint64_t busy_ns[3], calls[3], bytes[3];

  void add(const Span& span) {
    calls[span.kind] += span.is_call;
    busy_ns[span.kind] += span.is_own ? uint64_t(span.until - span.from) : 0;
    bytes[span.kind] += span.bytes;
  }

  void add_to(weir_reader_tile& tile) const {
    for (Kind kind : {kReads, kWrites, kOthers})
      tile.busy_ns[kind] += busy_ns[kind], tile.calls[kind] += calls[kind];
    for (Kind kind : {kReads, kWrites}) tile.bytes[kind] += bytes[kind];
  }
};

// Bytes moved before `at`, when they move evenly: differences of it add up to all of them.
uint64_t moved_before(const Span& span, int64_t at) {
  const auto whole =
      static_cast<unsigned __int128>(span.bytes) * static_cast<uint64_t>(at - span.from);
  return static_cast<uint64_t>(whole / static_cast<uint64_t>(span.until - span.from));
}

void add(weir_reader_tile& to, const weir_reader_tile& tile) {
  for (size_t kind = 0; kind < std::size(to.busy_ns); ++kind)
    to.busy_ns[kind] += tile.busy_ns[kind];
  for (size_t kind = 0; kind < std::size(to.calls); ++kind) to.calls[kind] += tile.calls[kind];
  for (size_t kind = 0; kind < std::size(to.bytes); ++kind) to.bytes[kind] += tile.bytes[kind];
  to.waiting_ns += tile.waiting_ns;
}

class Row {
 public:
  Row(weir_reader_tile* tiles, const weir_reader_window& window)
      : tiles_(tiles), shift_(window.shift), bins_(int64_t(window.bins)) {}

  weir_reader_tile* at(int64_t bin) const {
    return bin >= 0 && bin < bins_ ? tiles_ + bin : nullptr;
  }

  void wait(int64_t from, int64_t until) const {
    const int64_t last = std::min(until >> shift_, bins_ - 1);
    for (int64_t bin = std::max<int64_t>(from >> shift_, 0); bin <= last; ++bin) {
      const int64_t begin = std::max(from, bin << shift_),
                    end = std::min(until, (bin + 1) << shift_);
      if (end > begin) tiles_[bin].waiting_ns += uint64_t(end - begin);
    }
  }

  // A span that ends in a later slice than it begins in.
  void spread(const Span& span) const {
    const int64_t first = span.from >> shift_, last = std::min(span.until >> shift_, bins_ - 1);
    if (weir_reader_tile* tile = at(first)) tile->calls[span.kind] += span.is_call;
    for (int64_t bin = std::max<int64_t>(first, 0); bin <= last; ++bin) {
      const int64_t from = std::max(span.from, bin << shift_),
                    until = std::min(span.until, (bin + 1) << shift_);
      if (span.is_own) tiles_[bin].busy_ns[span.kind] += uint64_t(until - from);
      if (span.bytes != 0)
        tiles_[bin].bytes[span.kind] += moved_before(span, until) - moved_before(span, from);
    }
  }

 private:
  weir_reader_tile* tiles_;
  uint32_t shift_;
  int64_t bins_;
};

// Where one thread adds: rows and groups of tiles that no other thread adds to.
struct Sums {
  weir_reader_tile *by_row, *by_group;
};

// The spans of one row. Neighbours are almost always of one slice and one group: what they add up
// to is held back and put into both tiles at once.
class Adding {
 public:
  Adding(const weir_reader_window& window, const Sums& sums, uint32_t row)
      : window_(window), sums_(sums), row_(sums.by_row + row * window.bins, window) {}
  ~Adding() { put(); }

  void wait(int64_t from, int64_t until) const { row_.wait(from, until); }

  void add(const Span& span, uint8_t group) {
    if (group != group_ || (span.from >> window_.shift) != bin_) {
      put();
      group_ = group;
      bin_ = span.from >> window_.shift;
    }
    if ((span.until >> window_.shift) == bin_) [[likely]] {
      held_.add(span);
    } else if (span.until > span.from) {
      row_.spread(span);
      if (group < window_.groups) group_row().spread(span);
    } else if (span.is_call) {  // of a damaged clock, that runs backwards
      held_.calls[span.kind] += 1;
    }
  }

 private:
  Row group_row() const { return Row(sums_.by_group + group_ * window_.bins, window_); }

  void put() {
    if (weir_reader_tile* tile = row_.at(bin_)) {
      held_.add_to(*tile);
      if (group_ < window_.groups) held_.add_to(*group_row().at(bin_));
    }
    held_ = {};
  }

  const weir_reader_window& window_;
  const Sums& sums_;
  const Row row_;
  Held held_{};
  int64_t bin_ = -1;
  uint8_t group_ = Groups::kHidden;
};

// A chunk whose process has a row.
struct Part {
  const TilesInput* input;
  weir_reader_chunk* chunk;
  const Groups* groups;
  uint32_t row;
};

// The records of a part, in ns since the window began: the clock says so at once. Unsigned, because
// a damaged clock may carry times around.
class Reading {
 public:
  Reading(const Part& part, const weir_reader_window& window)
      : part_(part), clock_(part.input->clock) {
    clock_.base_ns = int64_t(uint64_t(clock_.base_ns) - uint64_t(window.origin_ns));
  }

  // kTimes: finds the chunk's times (times.h) on the way.
  template <bool kTimes>
  void into(Adding& adding) const {
    ChunkTimes times;
    const Groups& groups = *part_.groups;
    const char* at = part_.input->file->records(part_.chunk->offset);
    for (const char* end = at + part_.chunk->entries * sizeof(Words); at != end;
         at += sizeof(Words)) {
      const Words record = Words::load(at);
      const Kind kind = kKinds[record.op()];
      if (kind >= kWait || record.layer() > uint8_t(wire::Layer::mpi)) {
        if (kTimes && is_timed_call(record)) {
          times.take(record.start(), record.end());
          times.take_op(record.op());
        }
        if (kind == kWait) wait(record, adding);
        continue;
      }
      if (kTimes) times.take(record.start(), record.end());
      const uint8_t group = groups.of(record.file());
      if (group != Groups::kHidden) adding.add(span_of(record, kind), group);
    }
    if (kTimes) times.give(*part_.chunk);
  }

 private:
  void wait(const Words& record, const Adding& adding) const {
    if (record.layer() != uint8_t(wire::Layer::mpi) || record.is_nested()) return;
    adding.wait(timestamp_ns(clock_, record.start()), timestamp_ns(clock_, record.end()));
  }

  Span span_of(const Words& record, Kind kind) const {
    const bool moves = kind != kOthers && record.is_lowest() && !record.has_failed();
    return {timestamp_ns(clock_, record.start()),
            timestamp_ns(clock_, record.end()),
            moves ? record.size() : 0,
            kind,
            (record.flags() & wire::kBelow) == 0,
            record.has_own_time()};
  }

  const Part& part_;
  weir_reader_clock clock_;
};

std::vector<std::vector<Groups>> groups_of(const std::vector<TilesInput>& inputs, bool all_names) {
  std::vector<std::vector<Groups>> groups(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (uint32_t p = 0; p < inputs[i].index->processes.size(); ++p) {
      groups[i].emplace_back(*inputs[i].names, p, inputs[i].group_of, all_names);
    }
  }
  return groups;
}

std::vector<Part> parts_of(const std::vector<TilesInput>& inputs,
                           const std::vector<std::vector<Groups>>& groups, uint32_t rows) {
  std::vector<Part> parts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (auto& chunk : inputs[i].index->chunks) {
      const uint32_t row = inputs[i].row_of[chunk.process];
      if (chunk.kind != uint32_t(wire::Kind::kEvents) || row >= rows) continue;
      parts.push_back({&inputs[i], &chunk, &groups[i][chunk.process], row});
    }
  }
  return parts;
}

// The times of a file's chunks are known now if all of them were read.
void note_times(const TilesInput& input, uint32_t rows) {
  const auto& chunks = input.index->chunks;
  input.index->has_times |=
      std::all_of(chunks.begin(), chunks.end(), [&](const weir_reader_chunk& chunk) {
        return chunk.kind != uint32_t(wire::Kind::kEvents) || input.row_of[chunk.process] < rows;
      });
}

// How the parts are shared out. Each thread takes what comes next and adds to tiles of its own,
// which are added up in the end; where so many tiles would take too much memory, each thread has
// rows of its own, and only the groups' tiles are its own copies.
struct Sharing {
  static constexpr uint64_t kMostBytes = 64 << 20;  // of copies

  Sharing(const weir_reader_window& window, size_t parts) {
    const uint64_t of_rows = window.rows * window.bins * sizeof(weir_reader_tile),
                   of_groups = window.groups * window.bins * sizeof(weir_reader_tile);
    const auto most = [&](uint64_t bytes, uint64_t shares) {
      return std::max<uint64_t>(1, std::min({uint64_t{window.threads}, shares,
                                             1 + kMostBytes / std::max<uint64_t>(bytes, 1)}));
    };
    threads = most(of_rows + of_groups, parts);
    has_own_rows = most(of_groups, window.rows) > threads;
    if (has_own_rows) threads = most(of_groups, window.rows);
  }

  size_t threads;
  bool has_own_rows;
};

std::vector<size_t> threads_of_rows(const std::vector<Part>& parts, const Sharing& sharing,
                                    uint32_t rows) {
  std::vector<uint64_t> records(rows);
  for (const Part& part : parts) records[part.row] += part.chunk->entries;
  return shares_of(records, sharing.threads);
}

class Copies {
 public:
  Copies(const weir_reader_window& window, const Sharing& sharing, weir_reader_tile* by_row,
         weir_reader_tile* by_group)
      : of_rows_(window.rows * window.bins),
        of_groups_(window.groups * window.bins),
        sums_(sharing.threads, {by_row, by_group}) {
    for (size_t i = 1; i < sharing.threads; ++i) {
      copies_.emplace_back((sharing.has_own_rows ? 0 : of_rows_) + of_groups_);
      sums_[i].by_group = copies_.back().data();
      if (!sharing.has_own_rows) sums_[i].by_row = copies_.back().data() + of_groups_;
    }
  }

  const Sums& of(size_t thread) const { return sums_[thread]; }

  void add_up() const {
    for (const auto& copy : copies_) {
      for (size_t i = 0; i < copy.size(); ++i)
        add(i < of_groups_ ? sums_[0].by_group[i] : sums_[0].by_row[i - of_groups_], copy[i]);
    }
  }

 private:
  uint64_t of_rows_, of_groups_;
  std::vector<Sums> sums_;
  std::vector<std::vector<weir_reader_tile>> copies_;
};

}  // namespace

void make_tiles(const std::vector<TilesInput>& inputs, bool all_names,
                const weir_reader_window& window, weir_reader_tile* by_row,
                weir_reader_tile* by_group) {
  const auto groups = groups_of(inputs, all_names);
  const std::vector<Part> parts = parts_of(inputs, groups, window.rows);
  const Sharing sharing(window, parts.size());
  const std::vector<size_t> thread_of =
      sharing.has_own_rows ? threads_of_rows(parts, sharing, window.rows) : std::vector<size_t>();
  const Copies copies(window, sharing, by_row, by_group);
  const auto read = [&](const Part& part, size_t thread) {
    const Reading reading(part, window);
    Adding adding(window, copies.of(thread), part.row);
    if (part.input->index->has_times) reading.into<false>(adding);
    else reading.into<true>(adding);
    part.input->file->done(part.chunk->size_bytes);
  };
  std::atomic<size_t> next = 0;
  in_parallel(sharing.threads, [&](size_t thread) {
    if (sharing.has_own_rows) {
      for (const Part& part : parts) {
        if (thread_of[part.row] == thread) read(part, thread);
      }
    } else {
      for (size_t i; (i = next.fetch_add(1)) < parts.size();) read(parts[i], thread);
    }
  });
  copies.add_up();
  for (const TilesInput& input : inputs) note_times(input, window.rows);
}

}  // namespace weir::reader
