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

// The calls of one rank, by falling end: what lies within a call comes behind it.
class Costs {
 public:
  Costs(const OutputInput& input, uint32_t rank, size_t logs)
      : labels_(*input.asked),
        waited_(input.asked->waited, rank, input),
        waiting_(input.asked->waiting, rank, input),
        gaps_({labels_, waited_, {input.asked->arriving, rank, input}},
              double(length_ns(input.clock, 1 << 20)) / (1 << 20)),
        outermost_(logs) {}

  // log: its place among those of the rank.
  void take(const Call& call, size_t log) {
    Outermost& around = outermost_[log];
    if (call.begin >= around.begin) return within(call, around);
    if (call.kind >= Call::kCollects) return gaps_.mpi(call);
    const bool counts = call.label != Call::kNone && call.kind > Call::kRead;
    if (call.is_nested) {  // made by the kernel while the thread goes on
      if (counts && call.writes()) labels_.settle(labels_.file_of(call.label), true);
    } else if (counts) {
      outermost(call, around);
    } else {
      gaps_.stop(call.begin);
    }
  }

  void add_rows(uint32_t rank, const weir_reader_clock& clock,
                std::vector<weir_reader_output_cost>& to) const {
    const auto ns = [&](int64_t ticks) { return int64_t(length_ns(clock, uint64_t(ticks))); };
    const auto add = [&](uint32_t label, uint32_t of, const Account& account) {
      const Sums& s = account.kept;
      if (s.calls == 0) return;
      const int64_t gather_ns = std::max<int64_t>(ns(s.gather) - s.gathering_wait_ns, 0);
      const int64_t mpi_ns = ns(std::max<int64_t>(s.inner - s.system, 0));
      const int64_t waiting_ns = std::min(s.waiting_ns, mpi_ns);
      to.push_back({rank, label, of, 0, s.calls, s.bytes, mpi_ns - waiting_ns,
                    ns(std::max<int64_t>(s.all - s.inner, 0)), ns(s.system), gather_ns,
                    ns(s.packing), waiting_ns, s.waited_ns});
    };
    for (const Label& label : labels_.all()) add(label.number, WEIR_READER_OF_LABEL, label.account);
    for (const FileState& file : labels_.files())
      add(file.whole->number, WEIR_READER_OF_FILE, file.account);
    add(0, WEIR_READER_OF_RANK, labels_.whole());
  }

 private:
  // The call of a log in which others of it may lie. label: none where it does not count.
  struct Outermost {
    int64_t begin = INT64_MAX;
    FileState* file = nullptr;
    Label* label = nullptr;
    uint32_t dropped = 0;  // of the file, then
  };

  // A session of a file counts when something is written in it: a file that is read, or only
  // opened, is no output. What follows the last write of a session is put off until that is met.
  Label* label_of(const Call& call, FileState& file) {
    Label& label = labels_.label(call.label);
    switch (call.kind) {
      case Call::kWrite: case Call::kDefine: labels_.settle(file, true); return &label;
      case Call::kCreate:
        labels_.settle(file, true);
        file.is_written = false;
        return &label;
      case Call::kOpen:
        if (!file.is_written) return labels_.settle(file, false), nullptr;
        file.is_written = false;
        return &label;
      default:
        if (call.kind == Call::kClose && &label == file.whole) file.is_written = false;
        if (!file.is_written) Labels::put_off(label, file);
        return &label;
    }
  }

  void outermost(const Call& call, Outermost& around) {
    FileState& file = labels_.file_of(call.label);
    Label* label = label_of(call, file);
    around = {call.begin, &file, label, file.dropped};
    if (label == nullptr) return gaps_.stop(call.begin);
    gaps_.output(call, *label, file);
    int64_t until = INT64_MIN, waited_ns = 0;  // which mostly is one for all lines
    labels_.each_of(*label, file, [&](Account& account, Sums& sums) {
      sums.calls += 1;
      sums.bytes += call.kind == Call::kWrite ? call.bytes : 0;
      if (const int64_t its = account.all.until(call.end); its != until) {
        until = its;
        waited_ns = waited_.between(call.begin, until);
      }
      sums.waited_ns += waited_ns;
      sums.all += account.all.add(call.begin, call.end);
    });
    add_parts(call, *label, file);
  }

  void within(const Call& call, Outermost& around) {
    if (around.file == nullptr || call.is_nested) return;
    FileState& file = *around.file;
    if (call.writes() && call.label != Call::kNone && !file.labels.empty() &&
        &labels_.file_of(call.label) == &file)
      labels_.settle(file, true);  // what was put off has written
    if (file.dropped != around.dropped) around.label = nullptr;
    if (around.label != nullptr) add_parts(call, *around.label, file);
  }

  // Unions of what lies within outermost calls.
  void add_parts(const Call& call, Label& label, FileState& file) {
    const bool is_system = call.kind < Call::kCollects && call.level == Call::kSystem;
    if (!is_system && call.kind < Call::kCollects && call.level != Call::kMpiIo) return;
    int64_t until = INT64_MIN, waiting_ns = 0;
    labels_.each_of(label, file, [&](Account& account, Sums& sums) {
      if (is_system) {
        sums.system += account.system.add(call.begin, call.end);
      } else if (const int64_t its = account.inner.until(call.end); its != until) {
        until = its;
        waiting_ns = waiting_.between(call.begin, until);
      }
      sums.waiting_ns += waiting_ns;
      sums.inner += account.inner.add(call.begin, call.end);
    });
  }

  Labels labels_;
  Growing waited_, waiting_;
  Gaps gaps_;
  std::vector<Outermost> outermost_;  // by log
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
    Costs costs(input, uint32_t(rank), logs[rank].size());
    each_call(logs[rank], [&](const Call& call, size_t log) { costs.take(call, log); });
    costs.add_rows(uint32_t(rank), input.clock, of_rank[rank]);
  });
  Rows rows;
  for (const Rows& its : of_rank) rows.insert(rows.end(), its.begin(), its.end());
  return rows;
}

}  // namespace weir::reader
