// SPDX-License-Identifier: Apache-2.0
#include "reader/shares.h"

namespace weir::reader {
namespace {

// Which cell a timestamp lies in: mostly that of the one before, or the next.
class Cells {
 public:
  explicit Cells(const weir_reader_edges& edges) : edges_(edges.at_ns), last_(edges.count - 1) {}

  int64_t begin() const { return edges_[0]; }
  int64_t end() const { return edges_[last_]; }
  int64_t edge(uint64_t cell) const { return edges_[cell]; }

  // before: begin() <= timestamp < end().
  uint64_t of(int64_t timestamp) {
    for (uint64_t steps = 0; steps < 4 && timestamp >= edges_[at_]; ++steps, ++at_) {
      if (timestamp < edges_[at_ + 1]) return at_;
      if (at_ + 2 > last_) break;
    }
    return at_ = uint64_t(std::upper_bound(edges_, edges_ + last_, timestamp) - edges_) - 1;
  }

 private:
  const int64_t* edges_;
  const uint64_t last_;
  uint64_t at_ = 0;
};

// The row of each file and operation of a member.
class Rows {
 public:
  Rows(const weir_reader_call_row* rows, uint64_t count) : rows_(rows), count_(count) {
    for (uint64_t i = 0; i < count && rows[i].file < kDense; ++i) {
      if (rows[i].file >= first_.size()) first_.resize(rows[i].file + 1, uint32_t(count));
      first_[rows[i].file] = std::min(first_[rows[i].file], uint32_t(i));
    }
  }

  uint32_t of(const CallRecord& call) const {
    uint64_t i = count_;
    if (call.file < kDense) {
      if (call.file < first_.size()) i = first_[call.file];
    } else {
      i = uint64_t(std::lower_bound(rows_, rows_ + count_, call.file,
                                    [](const weir_reader_call_row& row, uint32_t file) {
                                      return row.file < file;
                                    }) - rows_);
    }
    for (; i < count_ && rows_[i].file == call.file; ++i) {
      if (rows_[i].op == call.op) return rows_[i].row;
    }
    return WEIR_READER_NO_ROW;
  }

 private:
  static constexpr uint32_t kDense = 1 << 20;
  const weir_reader_call_row* rows_;
  uint64_t count_;
  std::vector<uint32_t> first_;
};

// Hands each call of a file of which a part lies between the edges to `take`, with its row, unless
// counts(begin, end) says that this part is of no account.
template <class Counts, class Take>
void each_call(const Calls& calls, const weir_reader_edges& edges, Counts counts, Take take) {
  std::vector<Rows> rows;
  for (uint64_t i = 0; i < edges.members_count; ++i) {
    const uint64_t first = edges.first_row[i];
    rows.emplace_back(edges.rows + first, edges.first_row[i + 1] - first);
  }
  const int64_t from = edges.at_ns[0], until = edges.at_ns[edges.count - 1];
  for (size_t chunk = 0; chunk < calls.chunks(); ++chunk) {
    if (calls.begin_of(chunk) >= until || calls.end_of(chunk) <= from) continue;
    const Member& member = calls.member_of(chunk);
    const Rows& of = rows[calls.member_at(chunk)];
    calls.each(chunk, [&](const CallRecord& call) {
      if ((call.kinds & kFileIo) == 0 || !call.has_own_time) return;
      if (!member.is_on_line(call.thread)) return;
      const int64_t begin = std::max(call.start_ns, from), end = std::min(call.end_ns, until);
      if (begin >= end || !counts(begin, end)) return;
      const uint32_t row = of.of(call);
      if (row != WEIR_READER_NO_ROW) take(begin, end, row);
    });
  }
}

// How many cells before each edge cost something: the others, most of them, need no look at what
// the call is.
std::vector<uint32_t> dear_cells(const double* sums, uint64_t cells, uint64_t costs) {
  std::vector<uint32_t> before(cells + 1);
  for (uint64_t cell = 0; cell < cells; ++cell) {
    const double* const at = sums + cell * costs;
    before[cell + 1] = before[cell] + !std::equal(at, at + costs, at + costs);
  }
  return before;
}

}  // namespace

void call_time(const Calls& calls, const weir_reader_edges& edges, uint64_t rows, int64_t* cells) {
  const uint64_t count = edges.count - 1;
  Cells of(edges);
  std::vector<int64_t> whole(rows * (count + 1));  // calls that last over cells, begun less ended
  const auto every = [](int64_t, int64_t) { return true; };
  each_call(calls, edges, every, [&](int64_t begin, int64_t end, uint32_t row) {
    const uint64_t first = of.of(begin);
    int64_t* const its = cells + row * count;
    if (end <= of.edge(first + 1)) {
      its[first] += end - begin;
      return;
    }
    const uint64_t last = of.of(end - 1);
    its[first] += of.edge(first + 1) - begin;
    its[last] += end - of.edge(last);
    ++whole[row * (count + 1) + first + 1];
    --whole[row * (count + 1) + last];
  });
  for (uint64_t row = 0; row < rows; ++row) {
    int64_t times = 0;
    for (uint64_t cell = 0; cell < count; ++cell) {
      times += whole[row * (count + 1) + cell];
      cells[row * count + cell] += times * (of.edge(cell + 1) - of.edge(cell));
    }
  }
}

void call_shares(const Calls& calls, const weir_reader_edges& edges, uint64_t costs,
                 const double* sums, double* out) {
  Cells of(edges);
  // The costs at a timestamp, less those at the edge before it.
  const auto part = [&](uint64_t cell, uint64_t cost, int64_t since) {
    const double* const at = sums + cell * costs + cost;
    return (at[costs] - at[0]) * (double(since) / double(of.edge(cell + 1) - of.edge(cell)));
  };
  const std::vector<uint32_t> dear = dear_cells(sums, edges.count - 1, costs);
  uint64_t first = 0, last = 0;
  bool is_within = false;
  const auto counts = [&](int64_t begin, int64_t end) {
    first = of.of(begin);
    is_within = end <= of.edge(first + 1);
    last = is_within ? first : of.of(end - 1);
    return dear[last + 1] != dear[first];
  };
  each_call(calls, edges, counts, [&](int64_t begin, int64_t end, uint32_t row) {
    double* const its = out + row * costs;
    for (uint64_t cost = 0; cost < costs; ++cost) {
      if (is_within) {
        its[cost] += part(first, cost, end - begin);
      } else {
        its[cost] += part(first, cost, of.edge(first + 1) - begin) +
                     (sums[last * costs + cost] - sums[(first + 1) * costs + cost]) +
                     part(last, cost, end - of.edge(last));
      }
    }
  });
}

}  // namespace weir::reader
