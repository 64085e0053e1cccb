// SPDX-License-Identifier: Apache-2.0
#include "reader/output_cost.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "reader/output_gaps.h"
#include "reader/output_sums.h"
#include "reader/parallel.h"
#include "reader/times.h"

namespace weir::reader {
namespace {

// The calls of one rank, by falling end: what lies within a call comes behind it. Where calls of
// several processes or threads of the rank overlap, a moment counts once, for the call that ends
// last.
class Costs {
 public:
  Costs(const OutputInput& input, uint32_t rank)
      : labels_(*input.asked),
        waited_(input.asked->waited, rank, input),
        waiting_(input.asked->waiting, rank, input),
        gaps_(waited_, waiting_, double(length_ns(input.clock, 1 << 20)) / (1 << 20)) {}

  void take(const Call& call) {
    if (call.begin >= covered_) return within(call);
    if (call.kind >= Call::kCollects) return gaps_.mpi(call);
    const bool counts = call.label != Call::kNone && call.kind > Call::kRead;
    if (call.is_nested) {  // made by the kernel while the thread goes on
      if (counts && call.writes()) labels_.file_of(call.label).settle(true);
    } else if (counts) {
      outermost(call);
    } else {
      gaps_.stop();
    }
  }

  void add_rows(uint32_t rank, const weir_reader_clock& clock,
                std::vector<weir_reader_output_cost>& to) const {
    const auto ns = [&](int64_t ticks) { return int64_t(length_ns(clock, uint64_t(ticks))); };
    for (const Label& label : labels_.all()) {
      const Sums& s = label.kept;
      if (s.calls == 0) continue;
      const int64_t gather_ns = std::max<int64_t>(ns(s.gather) - s.gathering_wait_ns, 0);
      to.push_back({rank, label.number, s.calls, s.bytes, ns(s.inner - s.system),
                    ns(s.all - s.inner), ns(s.system), gather_ns, ns(s.packing), s.waited_ns});
    }
  }

 private:
  static constexpr int64_t kNever = INT64_MAX;

  // A session of a file counts when something is written in it: a file that is read, or only
  // opened, is no output. What follows the last write of a session is put off until that is met.
  Label* label_of(const Call& call, FileState& file) {
    Label& label = labels_.label(call.label);
    switch (call.kind) {
      case Call::kWrite: case Call::kDefine: file.settle(true); return &label;
      case Call::kCreate:
        file.settle(true);
        file.is_written = false;
        return &label;
      case Call::kOpen:
        if (!file.is_written) return file.settle(false), nullptr;
        file.is_written = false;
        return &label;
      default:
        if (call.kind == Call::kClose && &label == file.whole) file.is_written = false;
        if (!file.is_written) file.put_off(label);
        return &label;
    }
  }

  void outermost(const Call& call) {
    FileState& file = labels_.file_of(call.label);
    Label* label = label_of(call, file);
    const int64_t until = std::min(call.end, covered_);
    covered_ = call.begin;
    file_ = &file, label_ = label;
    if (label == nullptr) return gaps_.stop();
    gaps_.output(call, *label, file);
    Sums& sums = label->sums();
    sums.calls += 1;
    sums.bytes += call.kind == Call::kWrite ? call.bytes : 0;
    sums.all += until - call.begin;
    sums.waited_ns += waited_.between(call.begin, until);
    add_parts(call, sums);
  }

  void within(const Call& call) {
    if (file_ == nullptr || call.is_nested) return;
    if (call.writes() && call.label != Call::kNone && !file_->pending.empty() &&
        &labels_.file_of(call.label) == file_)
      file_->settle(true);  // what was put off has written
    if (label_ != nullptr) add_parts(call, label_->sums());
  }

  // Unions of what lies within outermost calls.
  void add_parts(const Call& call, Sums& sums) {
    const bool is_system = call.kind < Call::kCollects && call.level == Call::kSystem;
    if (!is_system && call.kind < Call::kCollects && call.level != Call::kMpiIo) return;
    const int64_t from = std::max(call.begin, covered_);
    const auto add = [&](int64_t& covered, int64_t& sum) {
      sum += std::max<int64_t>(std::min(call.end, covered) - from, 0);
      covered = std::min(covered, call.begin);
    };
    add(inner_, sums.inner);
    if (is_system) add(system_, sums.system);
  }

  Labels labels_;
  Growing waited_, waiting_;
  Gaps gaps_;
  FileState* file_ = nullptr;  // of the outermost call at hand; its label, unless it does not count
  Label* label_ = nullptr;
  // From here on time is covered: by outermost calls, by MPI and the system in them, by the latter.
  int64_t covered_ = kNever, inner_ = kNever, system_ = kNever;
};

using Rows = std::vector<weir_reader_output_cost>;

// The logs of each rank.
std::vector<std::vector<Log>> logs_of(const OutputInput& input) {
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, std::vector<const weir_reader_chunk*>> chunks;
  for (const weir_reader_chunk& chunk : input.index->chunks) {
    const uint32_t rank = input.asked->rank_of[chunk.process];
    if (has_calls(chunk) && rank < input.asked->ranks)
      chunks[{rank, chunk.process, chunk.log}].push_back(&chunk);
  }
  std::vector<std::vector<Log>> logs(input.asked->ranks);
  for (auto& [key, its] : chunks)
    logs[std::get<0>(key)].emplace_back(input, std::get<1>(key), std::move(its));
  return logs;
}

}  // namespace

Rows output_costs(const OutputInput& input) {
  auto logs = logs_of(input);
  std::vector<Rows> of_rank(logs.size());
  each_in_parallel(std::max(input.asked->threads, 1u), logs.size(), [&](size_t, size_t rank) {
    if (logs[rank].empty()) return;
    Costs costs(input, uint32_t(rank));
    each_call(logs[rank], [&](const Call& call) { costs.take(call); });
    costs.add_rows(uint32_t(rank), input.clock, of_rank[rank]);
  });
  Rows rows;
  for (const Rows& its : of_rank) rows.insert(rows.end(), its.begin(), its.end());
  return rows;
}

}  // namespace weir::reader
