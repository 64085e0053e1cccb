// SPDX-License-Identifier: Apache-2.0
#include "reader/scan.h"

#include <algorithm>
#include <tuple>

#include "reader/ops.h"
#include "reader/parallel.h"
#include "reader/record.h"
#include "reader/slots.h"
#include "reader/times.h"
#include "reader/units.h"

namespace weir::reader {
namespace {

constexpr size_t kAhead = 12;  // records between asking for a slot and using it

// The records and counters of some processes, chunk by chunk in the order of the file. tables: of
// the processes from `first` on, with room for those that are taken.
class Scan {
 public:
  Scan(const Mapping& file, const Index& index, const Names& names, std::vector<SlotTable>& tables,
       uint32_t first = 0)
      : file_(file), index_(index), names_(names), tables_(tables), first_(first), window_(file) {}

  // Fills in the chunk's times and order.
  void take(weir_reader_chunk& chunk) {
    index_.checks.check(file_, chunk);
    if (chunk.kind == uint32_t(wire::Kind::kEvents)) events(chunk);
    if (chunk.kind == uint32_t(wire::Kind::kCounters)) counters(chunk);
    window_.take(chunk.offset, chunk.size_bytes);
  }

  void leave() { window_.leave(); }

  // What was found, behind what others have found.
  void give(Scanned& all, std::vector<weir_reader_problem>& problems,
            std::vector<weir_reader_process>& processes) const {
    for (const auto& [process, counts] : counts_) {
      processes[process].events += counts.events;
      processes[process].counted = counts.counted;
    }
    all.histograms.insert(all.histograms.end(), histograms_.begin(), histograms_.end());
    const auto units = units_.sorted();
    all.units.insert(all.units.end(), units.begin(), units.end());
    all.syncs.insert(all.syncs.end(), syncs_.begin(), syncs_.end());
    problems.insert(problems.end(), problems_.list().begin(), problems_.list().end());
  }

 private:
  void events(weir_reader_chunk& chunk) {
    SlotTable& table = tables_[chunk.process - first_];
    const char* at = file_.records(chunk.offset);
    begin_of_chunk_ = at;
    offset_of_chunk_ = chunk.offset + sizeof(wire::ChunkHeader);
    const uint64_t count = chunk.entries;
    uint64_t last_key = ~uint64_t{0}, events = 0;
    Slot* slot = nullptr;
    ChunkTimes times;
    for (uint64_t i = 0; i < count; ++i, at += sizeof(Words)) {
      const Words record = Words::load(at);
      if (table.is_large() && i + kAhead < count) prefetch(table, at + kAhead * sizeof(Words));
      const uint64_t key = key::of(record.w1, record.w3);
      if (key != last_key) {
        Slot* found = slot_of(table, chunk.process, key);
        if (found == nullptr) {
          if (kOps[record.op()].treatment == Treatment::sync)
            syncs_.push_back({chunk.process, record.file(), record.size(), record.start()});
          continue;
        }
        slot = found;
        last_key = key;
        times.take_op(key::op(key));
      }
      const uint64_t start = record.start(), duration = record.duration(), end = start + duration;
      add(*slot, record, duration, at);
      slot->first = std::min(slot->first, start);
      slot->last = std::max(slot->last, end);
      times.take(start, end);
      ++events;
      if (key::layer(key) == uint8_t(wire::Layer::fortran)) units_.add(chunk.process, key, record);
    }
    times.give(chunk);
    counts_[chunk.process].events += events;
  }

  void add(Slot& slot, const Words& record, uint64_t duration, const char* at) {
    const uint64_t size = record.size(), failed = record.flags() & wire::kError;
    slot.calls += 1;
    slot.errors += failed;
    sum(slot.bytes, failed != 0 ? 0 : size, at);
    sum(slot.ticks, duration, at);
    slot.histogram->by_size[wire::bin_of(size)] += 1;
    slot.histogram->by_duration[wire::bin_of(duration)] += 1;
  }

  void sum(uint64_t& total, uint64_t more, const char* at) {
    if (__builtin_add_overflow(total, more, &total)) [[unlikely]] {
      total = ~uint64_t{0};
      problems_.add(Reason::record_overflow, offset_of(at), sizeof(wire::Counter));
    }
  }

  static void prefetch(const SlotTable& table, const char* at) {
    table.prefetch(key::of(Words::word(at + 8), Words::word(at + 24)));
  }

  // Null when records of this key are not calls, or not valid.
  Slot* slot_of(SlotTable& table, uint32_t process, uint64_t key) {
    Slot& slot = table.at(key);
    if (slot.key != 0) return &slot;
    if (!is_call(key::op(key), key::layer(key))) return nullptr;
    Slot& made = table.insert(key);
    made.histogram = histogram_of(process, key, names_.is_file(process, key::file(key)));
    return &made;
  }

  weir_reader_histogram* histogram_of(uint32_t process, uint64_t key, bool is_file) {
    const uint64_t kind = (key & key::kKindMask) << 1 | uint64_t{is_file};
    auto [found, is_new] = histogram_at_.try_emplace(uint64_t{process} << 32 | kind, nullptr);
    if (is_new) {
      histograms_.push_back(
          {process, key::op(key), key::layer(key), key::flags(key), is_file, {}, {}});
      found->second = &histograms_.back();
    }
    return found->second;
  }

  void counters(const weir_reader_chunk& chunk) {
    const char* at = file_.data() + chunk.offset + sizeof(wire::ChunkHeader);
    begin_of_chunk_ = at;
    offset_of_chunk_ = chunk.offset + sizeof(wire::ChunkHeader);
    if (index_.version == 1) return wide_counters(chunk, at);
    for (uint64_t i = 0, taken = 1; i < chunk.entries;
         i += taken, at += taken * sizeof(wire::Counter)) {
      const auto form = file_.copy<wire::Form>(offset_of(at) + offsetof(wire::Counter, form));
      taken = form == wire::Form::kHistogram ? wire::kHistogramEntries : 1;
      if (taken == 1) {
        counter(chunk.process, at);
      } else if (chunk.entries - i >= taken) {
        histogram(chunk.process, at);
      } else {
        return problems_.add(Reason::histogram_cut, offset_of(at));
      }
    }
  }

  void wide_counters(const weir_reader_chunk& chunk, const char* at) {
    for (uint64_t i = 0; i < chunk.entries; ++i, at += sizeof(wire::WideCounter)) {
      if (Slot* const slot = counter(chunk.process, at)) add(*slot->histogram, at);
    }
  }

  // A process that was killed may have counted an error and not yet its call.
  static bool is_possible(const wire::Counter& counter, const Possible& possible) {
    const char its_class = kOps[uint8_t(counter.op)].op_class;
    const bool moves = its_class == 'R' || its_class == 'W';
    return counter.first_ticks <= counter.last_ticks && possible.is_time(counter.first_ticks) &&
           possible.is_time(counter.last_ticks) && possible.is_id(counter.file) &&
           counter.errors <= counter.calls + 1 &&
           counter.ticks / counter.calls < possible.reach_ticks &&
           (!moves || counter.bytes / counter.calls <= kMostMoved);
  }

  // The counter's slot; null when there is nothing in it.
  Slot* counter(uint32_t process, const char* at) {
    const auto counter = file_.copy<wire::Counter>(offset_of(at));
    if (counter.calls == 0 || counter.op == wire::Op::kNone) return nullptr;
    if (!is_possible(counter, index_.checks.of(process))) {
      problems_.add(Reason::counter_time, offset_of(at), sizeof counter);
      return nullptr;
    }
    const uint64_t key =
        key::of(counter.file, uint8_t(counter.op), uint8_t(counter.layer), counter.flags);
    Slot* slot = slot_of(tables_[process - first_], process, key);
    if (slot == nullptr) {
      problems_.add(Reason::counter_key, offset_of(at), sizeof counter);
      return nullptr;
    }
    add(*slot, counter, at);
    sum(counts_[process].counted, counter.calls, at);
    return slot;
  }

  void histogram(uint32_t process, const char* at) {
    const auto head = file_.copy<wire::Histogram>(offset_of(at));
    const uint64_t key = key::of(0, uint8_t(head.op), uint8_t(head.layer), head.flags);
    if (!is_call(key::op(key), key::layer(key)) || head.of_others > 1) {
      problems_.add(Reason::counter_key, offset_of(at), sizeof(wire::Counter));
      return;
    }
    static constexpr wire::Bins kNone{};
    if (std::memcmp(&head.bins, &kNone, sizeof kNone) == 0) return;  // no call was counted yet
    add(*histogram_of(process, key, head.of_others == 0), at);
  }

  void add(Slot& slot, const wire::Counter& counter, const char* at) {
    sum(slot.calls, counter.calls, at);
    sum(slot.bytes, counter.bytes, at);
    sum(slot.ticks, counter.ticks, at);
    sum(slot.errors, counter.errors, at);
    slot.first = std::min(slot.first, counter.first_ticks);
    slot.last = std::max(slot.last, counter.last_ticks);
  }

  // at: a histogram, or a counter of version 1.
  void add(weir_reader_histogram& histogram, const char* at) {
    const auto bins = file_.copy<wire::Bins>(offset_of(at) + offsetof(wire::Histogram, bins));
    for (size_t bin = 0; bin < wire::kHistogramBins; ++bin) {
      sum(histogram.by_size[bin], bins.by_size[bin], at);
      sum(histogram.by_duration[bin], bins.by_duration[bin], at);
    }
  }

  uint64_t offset_of(const char* at) const {
    return offset_of_chunk_ + uint64_t(at - begin_of_chunk_);
  }

  struct Counts {
    uint64_t events = 0, counted = 0;
  };

  const Mapping& file_;
  const Index& index_;
  const char* begin_of_chunk_ = nullptr;  // the chunk at hand, and where it lies in the file
  uint64_t offset_of_chunk_ = 0;
  const Names& names_;
  std::vector<SlotTable>& tables_;  // others use those of their processes meanwhile
  const uint32_t first_;
  Window window_;
  std::unordered_map<uint32_t, Counts> counts_;  // by process
  Problems problems_;
  std::vector<weir_reader_sync> syncs_;
  std::deque<weir_reader_histogram> histograms_;  // slots point into it
  std::unordered_map<uint64_t, weir_reader_histogram*> histogram_at_;
  Units units_;
};

// first: the process of the first table.
std::vector<weir_reader_row> rows_of(const std::vector<SlotTable>& tables, uint32_t first) {
  std::vector<weir_reader_row> rows;
  for (uint32_t at = 0; at < tables.size(); ++at) {
    for (const Slot& slot : tables[at].slots()) {
      if (slot.calls == 0) continue;
      rows.push_back({first + at, key::file(slot.key), key::op(slot.key), key::layer(slot.key),
                      key::flags(slot.key), slot.histogram->is_file, 0, slot.calls, slot.bytes,
                      slot.ticks, slot.errors, slot.first, slot.last});
    }
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::tie(a.process, a.file, a.op, a.layer, a.flags) <
           std::tie(b.process, b.file, b.op, b.layer, b.flags);
  });
  return rows;
}

std::vector<size_t> shares_of_processes(const Index& index, size_t shares) {
  std::vector<uint64_t> entries(index.processes.size());
  for (const auto& chunk : index.chunks) entries[chunk.process] += chunk.entries;
  return shares_of(entries, shares);
}

// The same whatever the shares were.
void put_in_order(Scanned& all) {
  std::stable_sort(all.histograms.begin(), all.histograms.end(), [](const auto& a, const auto& b) {
    return std::tie(a.process, a.op, a.layer, a.flags, a.is_file) <
           std::tie(b.process, b.op, b.layer, b.flags, b.is_file);
  });
  std::stable_sort(all.units.begin(), all.units.end(),
                   [](const auto& a, const auto& b) { return a.process < b.process; });
  std::stable_sort(all.syncs.begin(), all.syncs.end(),
                   [](const auto& a, const auto& b) { return a.process < b.process; });
}

}  // namespace

Scanned scan(const Mapping& file, Index& index, const Names& names, Problems& problems,
             unsigned threads) {
  const size_t shares = std::clamp<size_t>(threads, 1, std::max<size_t>(index.processes.size(), 1));
  const std::vector<size_t> share_of = shares_of_processes(index, shares);
  std::vector<SlotTable> tables(index.processes.size());
  std::vector<Scan> scans(shares, Scan(file, index, names, tables));
  in_parallel(shares, [&](size_t share) {
    for (auto& chunk : index.chunks) {
      if (share_of[chunk.process] == share) scans[share].take(chunk);
    }
    scans[share].leave();
  });
  index.has_times = true;
  Scanned all;
  std::vector<weir_reader_problem> found;
  for (const Scan& one : scans) one.give(all, found, index.processes);
  for (const auto& one : index.checks.take_found()) found.push_back(one);
  problems.add(std::move(found));
  all.rows = rows_of(tables, 0);
  put_in_order(all);
  return all;
}

std::vector<weir_reader_row> rows_of(const Mapping& file, const Index& index, const Names& names,
                                     uint32_t first, uint32_t end) {
  std::vector<SlotTable> tables(end - first);
  Scan scan(file, index, names, tables, first);
  for (weir_reader_chunk chunk : index.chunks) {
    if (chunk.process >= first && chunk.process < end) scan.take(chunk);
  }
  scan.leave();
  return rows_of(tables, first);
}

std::vector<weir_reader_sync> syncs_of(const Mapping& file, Index& index) {
  std::vector<weir_reader_sync> syncs;
  Window window(file);
  for (auto& chunk : index.chunks) {
    if (chunk.kind != uint32_t(wire::Kind::kEvents)) continue;
    index.checks.check(file, chunk);
    const char* at = file.records(chunk.offset);
    for (uint64_t i = 0; i < chunk.entries; ++i, at += sizeof(Words)) {
      if (kOps[uint8_t(Words::word(at + 24) >> 32)].treatment != Treatment::sync) [[likely]]
        continue;
      const Words record = Words::load(at);
      syncs.push_back({chunk.process, record.file(), record.size(), record.start()});
    }
    window.take(chunk.offset, chunk.size_bytes);
  }
  window.leave();
  std::stable_sort(syncs.begin(), syncs.end(),
                   [](const auto& a, const auto& b) { return a.process < b.process; });
  return syncs;
}

}  // namespace weir::reader
