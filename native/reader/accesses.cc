// SPDX-License-Identifier: Apache-2.0
#include "reader/accesses.h"

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "reader/hidden.h"
#include "reader/in_order.h"
#include "reader/parallel.h"
#include "reader/stream.h"

namespace weir::reader {
namespace {

// Different sizes and strides of a file that are counted, as many as Darshan counts.
constexpr size_t kValues = 32;
constexpr size_t kAhead = 8;    // records between asking for a file's counts and using them
constexpr size_t kFilesInCache = 128;  // whose counts lie in the second-level cache
constexpr size_t kFew = 4;      // of a text and kind, where few are asked for
constexpr size_t kGiven = 8;    // of which so many are handed out
constexpr size_t kFilesKept = 256;  // of a process, whose memory serves the next one
constexpr size_t kCommonKinds = WEIR_READER_WRITE_BACKWARD + 1;

// Without a branch for each part.
struct IsMoreCommon {
  static unsigned __int128 key(const auto& one) {
    return static_cast<unsigned __int128>(one.count) << 64 | one.value;
  }
  bool operator()(const auto& a, const auto& b) const { return key(a) > key(b); }
};

// Puts so many of the most common ones first; returns how many these are.
template <class Rows>
size_t choose(Rows first, Rows end, size_t most) {
  if (size_t(end - first) <= most) return size_t(end - first);
  const Rows wanted = first + ptrdiff_t(most);
  std::sort(first, wanted, IsMoreCommon());
  for (Rows one = wanted; one != end; ++one) {
    if (!IsMoreCommon()(*one, wanted[-1])) continue;
    const auto its = std::exchange(*one, wanted[-1]);
    Rows place = wanted - 1;
    for (; place != first && IsMoreCommon()(its, place[-1]); --place) *place = place[-1];
    *place = its;
  }
  return most;
}

// Counts of different values.
class Counts {
 public:
  void add(uint64_t value) {
    ++all_;
    size_t slot = home(value);
    for (; places_[slot] != 0; slot = (slot + 1) % places_.size()) {
      Count& one = counts_[places_[slot] - 1];
      if (one.value != value) continue;
      ++one.count;
      return;
    }
    if (counts_.size() == kValues) return;
    if (counts_.size() == counts_.capacity()) counts_.reserve(counts_.empty() ? kFew : kValues);
    counts_.push_back({value, 1});
    places_[slot] = uint8_t(counts_.size());
  }

  // As none. Their memory stays.
  void clear() {
    counts_.clear();
    places_ = {};
    all_ = 0;
  }

  // Where its place is looked up.
  const void* place(uint64_t value) const { return &places_[home(value)]; }

  // How many had a value that came at least twice, and in one of 16.
  uint64_t regular() const {
    uint64_t sum = 0;
    for (const auto& one : counts_) sum += is_regular(one) ? one.count : 0;
    return sum;
  }

  // least: leaves out what came less often.
  void give(uint32_t file, uint32_t kind, std::vector<weir_reader_common>& out,
            uint64_t least = 1) {
    auto end = counts_.end();
    if (least > 1) {
      end = std::partition(counts_.begin(), end,
                           [&](const Count& one) { return one.count >= least; });
    }
    const size_t given = choose(counts_.begin(), end, kGiven);
    for (size_t i = 0; i < given; ++i)
      out.push_back({counts_[i].value, counts_[i].count, file, kind});
  }

 private:
  struct Count {
    uint64_t value, count;
  };

  static constexpr unsigned kSlotBits = 6;  // twice as many as values

  static size_t home(uint64_t value) { return value * 0x9e3779b97f4a7c15u >> (64 - kSlotBits); }
  bool is_regular(const Count& one) const { return one.count > 1 && one.count * 16 >= all_; }

  std::vector<Count> counts_;
  std::array<uint8_t, 1 << kSlotBits> places_ = {};  // in counts_, from 1, by hash; 0: none
  uint64_t all_ = 0;
};

// One file of one process. last_byte is Darshan's: 0 after an open.
struct Sums {
  weir_reader_access sums = {};
  weir_reader_alignment alignment = kLostAlignment;
  int64_t last_byte[2] = {0, 0};
  bool is_first[2] = {true, true};
  int last_way = -1;
  Stream stream;
};
struct File : Sums {
  Counts sizes[2], strides[2], backward[2];  // backward: distances without their sign

  // As a new one.
  void clear() {
    static_cast<Sums&>(*this) = Sums();
    for (Counts* some : {sizes, strides, backward}) {
      some[0].clear();
      some[1].clear();
    }
  }
};

// Most units are powers of two.
bool is_off(uint64_t offset, uint64_t unit) {
  if (unit == 0) return false;
  return ((unit & (unit - 1)) == 0 ? offset & (unit - 1) : offset % unit) != 0;
}

void transfer(File& file, size_t way, const Words& record, uint64_t offset) {
  weir_reader_access& sums = file.sums;
  const uint64_t size = record.size();
  ++sums.calls[way];
  sums.bytes[way] += size;
  sums.ticks[way] += record.duration();
  sums.longest_ticks[way] = std::max(sums.longest_ticks[way], record.duration());
  sums.switches += file.last_way >= 0 && file.last_way != int(way);
  file.last_way = int(way);
  file.sizes[way].add(size);
  if (offset == wire::kUnknownOffset) {
    ++sums.unknown[way];
    return;
  }
  const int64_t at = int64_t(offset), last = file.last_byte[way];
  sums.sequential[way] += at > last;
  sums.consecutive[way] += at == last + 1;
  if (file.is_first[way]) {
    ++sums.first[way];
  } else if (at > last + 1) {
    file.strides[way].add(uint64_t(at - last - 1));
  } else if (at == last + 1) {
    ++sums.adjacent[way];
  } else {
    file.backward[way].add(uint64_t(last + 1 - at));
  }
  file.is_first[way] = false;
  file.last_byte[way] = at + int64_t(size) - 1;
  sums.off_block[way] += is_off(offset, file.alignment.block_bytes);
  sums.off_stripe[way] += is_off(offset, file.alignment.stripe_bytes);
  if (size == 0) return;
  sums.begin[way] = std::min(sums.begin[way], offset);
  sums.end[way] = std::max(sums.end[way], offset + size);
}

void opened(File& file) {
  file.last_byte[0] = file.last_byte[1] = 0;
  file.is_first[0] = file.is_first[1] = true;
}

// One process after the other.
class OfProcess {
 public:
  OfProcess(const Names& names, std::span<const weir_reader_alignment> alignment, bool all_names)
      : names_(names), alignment_(alignment), all_names_(all_names) {}

  void begin(uint32_t process) {
    process_ = process;
    hidden_.emplace(names_, process);
    if (files_.size() > kFilesKept) files_.resize(kFilesKept);
    used_ = 0;
    dense_.clear();
    sparse_.clear();
  }

  void take(const Words& record) {
    const char found = kOps[record.op()].op_class;
    const bool moves = found == 'R' || found == 'W', opens = found == 'O';
    const bool of_stream = record.layer() == uint8_t(wire::Layer::stdio);
    if ((!moves && !opens && !of_stream) || !record.is_lowest() || record.has_failed()) return;
    if (!all_names_ && hidden_->hides(record.file())) return;
    if (moves) {
      File& file = of(record.file());
      transfer(file, found == 'W', record, file.stream.begin_of(record));
    } else if (of_stream) {
      File& file = of(record.file());
      file.stream.move(record);
      if (opens) opened(file);
    } else if (const uint32_t known = place_of(record.file()); known != kNone) {
      opened(files_[known]);
    }
  }

  // The record will be taken soon.
  void prefetch(const Words& record) const {
    if (used_ < kFilesInCache) return;
    const char found = kOps[record.op()].op_class;
    const uint32_t place = found == 'R' || found == 'W' ? place_of(record.file()) : kNone;
    if (place == kNone) return;
    const File& file = files_[place];
    const char* const from = reinterpret_cast<const char*>(&file);
    for (size_t at = 0; at < sizeof(Sums); at += 64) __builtin_prefetch(from + at, 1);
    __builtin_prefetch(file.sizes[found == 'W'].place(record.size()));
  }

  void give(Accesses& out) {
    for (size_t i = 0; i < used_; ++i) {
      File& file = files_[i];
      if (file.sums.calls[0] + file.sums.calls[1] == 0) continue;  // a stream without transfers
      const uint32_t number = uint32_t(out.files.size());
      for (size_t way : {0, 1}) {
        weir_reader_access& sums = file.sums;
        sums.strided[way] = file.strides[way].regular();
        sums.backward[way] = file.backward[way].regular();
        sums.random[way] = sums.calls[way] - sums.unknown[way] - sums.first[way] -
                           sums.adjacent[way] - sums.strided[way] - sums.backward[way];
        if (sums.end[way] == 0) sums.begin[way] = 0;
        file.sizes[way].give(number, uint32_t(way), out.common);
        file.strides[way].give(number, uint32_t(2 + way), out.common);
        file.backward[way].give(number, uint32_t(4 + way), out.common, 2);
      }
      out.files.push_back(file.sums);
    }
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0}, kDense = 1 << 20;

  uint32_t place_of(uint32_t id) const {
    if (id < kDense) return id < dense_.size() ? dense_[id] : kNone;
    const auto found = sparse_.find(id);
    return found == sparse_.end() ? kNone : found->second;
  }

  File& of(uint32_t id) {
    const uint32_t place = place_of(id);
    return place != kNone ? files_[place] : make(id);
  }

  File& make(uint32_t id) {
    if (id >= kDense) {
      sparse_[id] = used_;
    } else {
      if (id >= dense_.size()) dense_.resize(id + 1, kNone);
      dense_[id] = used_;
    }
    if (used_ == files_.size()) files_.emplace_back();
    File& made = files_[used_++];
    made.clear();
    made.sums.process = process_;
    made.sums.file = id;
    made.sums.begin[0] = made.sums.begin[1] = ~uint64_t{0};
    const uint32_t text = names_.text_of(process_, id);
    if (text < alignment_.size()) made.alignment = alignment_[text];
    return made;
  }

  const Names& names_;
  std::span<const weir_reader_alignment> alignment_;
  const bool all_names_;
  uint32_t process_ = 0;
  std::optional<Hidden> hidden_;
  std::deque<File> files_;  // the first used_ of them are of this process
  uint32_t used_ = 0;
  std::vector<uint32_t> dense_;  // places of files by their ids, and of large ids
  std::unordered_map<uint32_t, uint32_t> sparse_;
};

// Common values of all processes: those of one text added up, in the order of texts and kinds. Of a
// lost name they are those of its file.
class Commons {
 public:
  Commons(const Names& names, const std::vector<weir_reader_access>& files, size_t kept)
      : texts_(names.texts.size()), kept_(kept) {
    for (const auto& file : files) {
      const uint32_t text = names.text_of(file.process, file.file);
      group_of_.push_back(text == Names::kLost ? texts_ + group_of_.size() : text);
    }
  }

  // each: of every process, with indexes among all files; gives them up.
  std::vector<weir_reader_common> joined(std::vector<Accesses>& each) {
    std::vector<size_t> ends(texts_ + group_of_.size() + 1);
    for (const Accesses& one : each)
      for (const auto& common : one.common) ++ends[group_of_[common.file] + 1];
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<weir_reader_common> rows(ends.back());
    for (Accesses& one : each) {
      for (const auto& common : one.common) rows[ends[group_of_[common.file]]++] = common;
      one.common = {};
    }
    size_t kept = 0, begin = 0;
    for (size_t group = 0; group + 1 < ends.size(); begin = ends[group++])
      kept = take({rows.data() + begin, rows.data() + ends[group]}, rows, kept);
    rows.resize(kept);
    return rows;
  }

 private:
  // Puts what is kept of one text behind the first `kept` rows; returns how many these are then.
  size_t take(std::span<weir_reader_common> its, std::vector<weir_reader_common>& rows,
              size_t kept) {
    if (its.empty()) return kept;
    if (its.front().file != its.back().file) put_in_order(its);
    const size_t first = kept;
    size_t of_kind = kept;
    for (const weir_reader_common one : its) {
      if (kept != first && rows[kept - 1].kind == one.kind && rows[kept - 1].value == one.value) {
        rows[kept - 1].count += one.count;
        continue;
      }
      if (kept != first && rows[kept - 1].kind != one.kind)
        of_kind = kept = cut(rows, of_kind, kept);
      rows[kept++] = one;
    }
    return cut(rows, of_kind, kept);
  }

  // By kind, then value, then file.
  void put_in_order(std::span<weir_reader_common> its) {
    for (auto& some : of_kind_) some.clear();
    for (const auto& one : its) of_kind_[one.kind].push_back(one);
    auto out = its.begin();
    for (auto& some : of_kind_) {
      std::sort(some.begin(), some.end(), [](const auto& a, const auto& b) {
        return std::tie(a.value, a.file) < std::tie(b.value, b.file);
      });
      out = std::copy(some.begin(), some.end(), out);
    }
  }

  // Leaves the most common ones of a kind.
  size_t cut(std::vector<weir_reader_common>& rows, size_t begin, size_t end) const {
    return begin + choose(rows.begin() + ptrdiff_t(begin), rows.begin() + ptrdiff_t(end), kept_);
  }

  const size_t texts_, kept_;
  std::vector<size_t> group_of_;  // of each file
  std::array<std::vector<weir_reader_common>, kCommonKinds> of_kind_;  // of the text at hand
};

}  // namespace

Accesses find_accesses(const Mapping& file, const Index& index, const Names& names,
                       std::span<const weir_reader_alignment> alignment, AccessChoice choice,
                       unsigned threads) {
  const std::vector<Chunks> chunks = chunks_of(index);
  std::vector<Accesses> found(chunks.size());
  std::deque<OfProcess> of_thread;
  for (unsigned i = 0; i < std::max(threads, 1u); ++i)
    of_thread.emplace_back(names, alignment, choice.all_names);
  each_in_parallel(of_thread.size(), chunks.size(), [&](size_t thread, size_t process) {
    if (chunks[process].empty()) return;
    if (process < choice.processes.size() && choice.processes[process] == 0) return;
    OfProcess& of = of_thread[thread];
    of.begin(uint32_t(process));
    for (InOrder records(file, chunks[process]); !records.is_over(); records.next()) {
      if (const char* const ahead = records.ahead(kAhead)) of.prefetch(Words::load(ahead));
      of.take(records.record());
    }
    of.give(found[process]);
  });
  Accesses all;
  for (Accesses& one : found) {
    for (auto& common : one.common) common.file += uint32_t(all.files.size());
    all.files.insert(all.files.end(), one.files.begin(), one.files.end());
    one.files = {};
  }
  if (choice.commons == AccessCommons::by_process) {
    for (const Accesses& one : found)
      all.common.insert(all.common.end(), one.common.begin(), one.common.end());
  } else {
    const bool are_few = choice.commons == AccessCommons::few_by_text;
    all.common = Commons(names, all.files, are_few ? kFew : ~size_t{0}).joined(found);
  }
  return all;
}

}  // namespace weir::reader
