// SPDX-License-Identifier: Apache-2.0
#include "reader/rereads.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "reader/clock.h"
#include "reader/ops.h"
#include "reader/parallel.h"
#include "reader/record.h"
#include "reader/times.h"

namespace weir::reader {
namespace {

constexpr uint32_t kNoGroup = ~uint32_t{0};

// The group of each file of one process. Ids are small numbers without gaps unless a file is
// damaged.
class Groups {
 public:
  explicit Groups(std::span<const weir_reader_read_of> files) : files_(files) {
    if (files.empty() || files.back().file > 8 * files.size() + 4096) return;
    dense_.assign(size_t{files.back().file} + 1, kNoGroup);
    for (const auto& one : files) dense_[one.file] = one.group;
  }

  bool is_empty() const { return files_.empty(); }

  uint32_t of(uint32_t file) const {
    if (!dense_.empty()) return file < dense_.size() ? dense_[file] : kNoGroup;
    const auto found = std::lower_bound(files_.begin(), files_.end(), file,
                                        [](const auto& one, uint32_t id) { return one.file < id; });
    return found != files_.end() && found->file == file ? found->group : kNoGroup;
  }

 private:
  std::span<const weir_reader_read_of> files_;
  std::vector<uint32_t> dense_;
};

// Whether bytes moved, and are counted at this level.
bool moves(const Words& record) {
  return record.is_lowest() && !record.has_failed() && record.size() != 0;
}

// The chunks that may hold records of a group.
class Reads {
 public:
  explicit Reads(const std::vector<ReadsInput>& inputs) {
    for (const auto& input : inputs) {
      auto& groups = groups_.emplace_back();
      auto from = input.files.begin();
      for (uint32_t process = 0; process < input.index->processes.size(); ++process) {
        const auto until = std::find_if(from, input.files.end(),
                                        [&](const auto& one) { return one.process != process; });
        groups.emplace_back(std::span(from, until));
        from = until;
      }
      for (const auto& chunk : input.index->chunks) {
        if (has_calls(chunk) && !groups[chunk.process].is_empty())
          parts_.push_back({&input, &chunk, groups_.size() - 1});
      }
    }
  }

  // One pass, on a thread for each worker: worker.take(clock, group, record) of each record that it
  // wants.
  template <class Worker>
  void hand_to(std::vector<Worker>& workers) const {
    each_in_parallel(workers.size(), parts_.size(), [&](size_t thread, size_t i) {
      records(parts_[i], workers[thread]);
      parts_[i].input->file->done(parts_[i].chunk->size_bytes);
    });
  }

 private:
  struct Part {
    const ReadsInput* input;
    const weir_reader_chunk* chunk;
    size_t groups;
  };

  template <class Worker>
  void records(const Part& part, Worker& worker) const {
    const auto& [input, chunk, at_groups] = part;
    const Groups& groups = groups_[at_groups][chunk->process];
    const char* at = input->file->records(chunk->offset);
    for (uint64_t i = 0; i < chunk->entries; ++i, at += sizeof(Words)) {
      const Words record = Words::load(at);
      if (!worker.wants(record)) continue;
      const uint32_t group = groups.of(record.file());
      if (group != kNoGroup) worker.take(input->clock, group, record);
    }
  }

  std::vector<std::vector<Groups>> groups_;  // of each input, by process
  std::vector<Part> parts_;
};

class Between {
 public:
  Between(char op_class, std::span<const uint64_t> first_cut, std::span<const int64_t> cuts)
      : op_class_(op_class),
        first_cut_(first_cut),
        cuts_(cuts),
        uses_(cuts.size() + first_cut.size() - 1, {0, 0, kNever, -kNever}) {}

  bool wants(const Words& record) const {
    const char found = kOps[record.op()].op_class;
    return (found == 'R' || found == 'W' ? found : 'M') == op_class_ && kIsIo[record.op()] &&
           record.layer() <= uint8_t(wire::Layer::mpi);
  }

  void take(const weir_reader_clock& clock, uint32_t group, const Words& record) {
    const int64_t at = timestamp_ns(clock, record.start());
    if (group != group_ || at <= after_ || at > until_) find(group, at);
    weir_reader_use& use = uses_[place_];
    if (record.has_own_time()) use.own_ns += length_ns(clock, record.duration());
    if (op_class_ == 'M' || !moves(record)) return;
    use.bytes += record.size();
    use.first_ns = std::min(use.first_ns, at);
    use.last_ns = std::max(use.last_ns, timestamp_ns(clock, record.end()));
  }

  void give(weir_reader_use* all) const {
    for (size_t i = 0; i < uses_.size(); ++i) {
      all[i].bytes += uses_[i].bytes;
      all[i].own_ns += uses_[i].own_ns;
      all[i].first_ns = std::min(all[i].first_ns, uses_[i].first_ns);
      all[i].last_ns = std::max(all[i].last_ns, uses_[i].last_ns);
    }
  }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  void find(uint32_t group, int64_t at) {
    const auto of_group =
        cuts_.subspan(first_cut_[group], first_cut_[group + 1] - first_cut_[group]);
    const auto next = std::lower_bound(of_group.begin(), of_group.end(), at);
    group_ = group;
    place_ = first_cut_[group] + group + size_t(next - of_group.begin());
    after_ = next == of_group.begin() ? std::numeric_limits<int64_t>::min() : next[-1];
    until_ = next == of_group.end() ? std::numeric_limits<int64_t>::max() : *next;
  }

  char op_class_;
  std::span<const uint64_t> first_cut_;
  std::span<const int64_t> cuts_;
  std::vector<weir_reader_use> uses_;
  // Of the record before, and the place of what lies between the same cuts.
  uint32_t group_ = kNoGroup;
  size_t place_ = 0;
  int64_t after_ = 0, until_ = 0;
};

struct Stretch {
  uint32_t group;
  uint64_t begin, end;
};

// A place in all files: what the memory does not hold in one pass is distinguished by it.
struct Place {
  uint32_t name;
  uint64_t offset;
  auto operator<=>(const Place&) const = default;
};

constexpr Place kEnd = {std::numeric_limits<uint32_t>::max(), std::numeric_limits<uint64_t>::max()};

// The same bytes as disjoint stretches, by group and begin. Stretches that touch are one.
void unite(std::vector<Stretch>& all) {
  std::sort(all.begin(), all.end(), [](const Stretch& a, const Stretch& b) {
    return std::tie(a.group, a.begin) < std::tie(b.group, b.begin);
  });
  size_t last = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].group == all[last].group && all[i].begin <= all[last].end) {
      all[last].end = std::max(all[last].end, all[i].end);
    } else {
      all[++last] = all[i];
    }
  }
  if (!all.empty()) all.resize(last + 1);
}

// The disjoint stretches from `from` on that fit into the memory.
class Extents {
 public:
  Extents(std::span<const uint32_t> name_of, Place from, uint64_t room)
      : name_of_(name_of),
        from_(from),
        room_(room),
        trigger_(room),
        open_(name_of.size()),
        known_(name_of.size()) {}

  static bool wants(const Words& record) {
    return kOps[record.op()].op_class == 'R' && moves(record);
  }

  void take(const weir_reader_clock&, uint32_t group, const Words& record) {
    const uint64_t begin = record.offset(), size = record.size();
    if (begin == wire::kUnknownOffset) return;
    known_[group] += size;
    Stretch& open = open_[group];
    // Goes on where one of the reads before ended.
    if (begin >= open.begin && begin <= open.end && open.end != 0) {
      open.end = std::max(open.end, begin + size);
      return;
    }
    keep(open);
    open = {group, begin, begin + size};
  }

  // After the last read: up to where this one has all.
  Place end() {
    for (const Stretch& open : open_) keep(open);
    return limit_;
  }

  void give_known(weir_reader_extent* of_groups) const {
    for (size_t group = 0; group < known_.size(); ++group)
      of_groups[group].known_bytes += known_[group];
  }

  // What lies before a limit that is not behind the end.
  std::vector<Stretch> stretches(Place limit) {
    limit_ = limit;
    cut();
    unite(kept_);
    return std::move(kept_);
  }

 private:
  Place place_of(const Stretch& one) const { return {name_of_[one.group], one.begin}; }

  void keep(Stretch one) {
    if (one.end == 0 || !clip(one)) return;
    kept_.push_back(one);
    if (kept_.size() >= trigger_) compact();
  }

  // The part between from_ and limit_; false: there is none.
  bool clip(Stretch& one) const {
    const uint32_t name = name_of_[one.group];
    if (name < from_.name || name > limit_.name) return false;
    if (name == from_.name) one.begin = std::max(one.begin, from_.offset);
    if (name == limit_.name) one.end = std::min(one.end, limit_.offset);
    return one.begin < one.end;
  }

  void cut() {
    std::erase_if(kept_, [&](Stretch& one) { return !clip(one); });
  }

  void compact() {
    unite(kept_);
    if (kept_.size() > room_ / 2) {
      lower_limit();
      cut();
    }
    trigger_ = std::max<uint64_t>(room_, 2 * kept_.size());
  }

  // To the middle of what is kept, or as far before it as there are stretches; but the next pass
  // must begin behind this one.
  void lower_limit() {
    std::vector<Place> places;
    for (const Stretch& one : kept_) {
      if (place_of(one) > from_) places.push_back(place_of(one));
    }
    if (places.empty()) return;
    const auto middle =
        places.begin() + ptrdiff_t(std::min<size_t>(places.size() - 1, kept_.size() / 2));
    std::nth_element(places.begin(), middle, places.end());
    limit_ = *middle;
  }

  std::span<const uint32_t> name_of_;
  Place from_, limit_ = kEnd;
  uint64_t room_, trigger_;
  std::vector<Stretch> open_;  // of each group, the one that its reads go on with; no end: none
  std::vector<uint64_t> known_;
  std::vector<Stretch> kept_;
};

}  // namespace

void uses_between(const std::vector<ReadsInput>& inputs, unsigned threads, char op_class,
                  std::span<const uint64_t> first_cut, std::span<const int64_t> cuts,
                  weir_reader_use* uses) {
  std::vector<Between> workers(threads, Between(op_class, first_cut, cuts));
  Reads(inputs).hand_to(workers);
  for (const Between& worker : workers) worker.give(uses);
}

void read_extents(const std::vector<ReadsInput>& inputs, unsigned threads,
                  std::span<const uint32_t> name_of, uint64_t room, weir_reader_extent* of_groups,
                  uint64_t* of_names) {
  const Reads reads(inputs);
  for (Place from = {0, 0}; from != kEnd;) {
    std::vector<Extents> workers(threads,
                                 Extents(name_of, from, std::max<uint64_t>(room / threads, 2)));
    reads.hand_to(workers);
    Place limit = kEnd;
    for (Extents& worker : workers) {
      limit = std::min(limit, worker.end());
      if (from == Place{0, 0}) worker.give_known(of_groups);  // each pass sees all reads
    }
    std::vector<Stretch> all;
    for (Extents& worker : workers) {
      const auto found = worker.stretches(limit);
      all.insert(all.end(), found.begin(), found.end());
    }
    unite(all);
    for (Stretch& one : all) {
      of_groups[one.group].distinct_bytes += one.end - one.begin;
      one.group = name_of[one.group];
    }
    unite(all);
    for (const Stretch& one : all) of_names[one.group] += one.end - one.begin;
    from = limit;
  }
}

}  // namespace weir::reader
