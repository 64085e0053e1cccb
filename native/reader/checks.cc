// SPDX-License-Identifier: Apache-2.0
#include "reader/checks.h"

#include <atomic>
#include <utility>

#include "reader/index.h"
#include "reader/names.h"
#include "reader/ops.h"
#include "reader/parallel.h"
#include "reader/record.h"
#include "wire/checksum.h"

namespace weir::reader {
namespace {

constexpr uint64_t kSlackNs = 3600'000'000'000;  // clocks of two cores, and what runs behind exit

struct OpLimits {
  uint64_t most_size = ~uint64_t{0};
  uint32_t names = ~uint32_t{0};  // 0: what other records have as their file is a number here
  bool is_known = false;
};

// Where the routine of MPI stands above the bytes: the greatest that both may be.
constexpr uint64_t most_with(uint64_t routine) { return routine << 32 | ~uint32_t{0}; }

constexpr uint64_t greatest_routine() {
  uint64_t greatest = 0;
  for (uint64_t i = 0; i < kMpiRoutines.size(); ++i) {
    if (kMpiRoutines[i] != nullptr) greatest = i;
  }
  return greatest;
}

constexpr std::array<OpLimits, 256> kLimits = [] {
  std::array<OpLimits, 256> limits{};
  for (size_t op = 0; op < 256; ++op) {
    const OpInfo& info = kOps[op];
    OpLimits& its = limits[op];
    its.is_known = info.treatment != Treatment::unknown;
    if (info.treatment == Treatment::sync || info.treatment == Treatment::thread) its.names = 0;
    if (info.op_class == 'R' || info.op_class == 'W') its.most_size = kMostMoved;
    if (op >= size_t(wire::Op::kMpiCollective) && op <= size_t(wire::Op::kMpiSend))
      its.most_size = most_with(greatest_routine());
    if (op == size_t(wire::Op::kMpiAwaited))
      its.most_size = most_with(uint64_t(wire::Awaited::message));
  }
  return limits;
}();

constexpr std::array<bool, 256> kKnownLayers = [] {
  std::array<bool, 256> known{};
  for (unsigned layer = 0; layer < 256; ++layer) known[layer] = is_known_layer(uint8_t(layer));
  return known;
}();

// The last word first: its writer stores it last.
uint64_t last_word(const char* at) {
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(at) + 3, __ATOMIC_ACQUIRE);
}
Words with_last(const char* at, uint64_t last) {
  return {Words::word(at), Words::word(at + 8), Words::word(at + 16), last};
}

bool is_possible(const Words& record, const Possible& possible) {
  const OpLimits& limits = kLimits[record.op()];
  return bool(limits.is_known & kKnownLayers[record.layer()] & possible.is_time(record.start()) &
              possible.is_time(record.end()) & possible.is_id(record.file() & limits.names) &
              (record.size() <= limits.most_size || record.has_failed()));
}

// By operation and layer, as a record has them side by side: known ones, whose records bear the id
// of a name. Any size below 2^32 is possible for them.
constexpr uint32_t kLayerShift = 8;
constexpr std::array<bool, 1 << 16> kUsual = [] {
  std::array<bool, 1 << 16> usual{};
  for (uint32_t op = 0; op < 256; ++op) {
    if (!kLimits[op].is_known || kLimits[op].names == 0 || kLimits[op].most_size < ~uint32_t{0})
      continue;
    for (uint32_t layer = 0; layer < 256; ++layer)
      usual[op | layer << kLayerShift] = kKnownLayers[layer];
  }
  return usual;
}();

// The same as is_possible(), by fewer instructions for most records.
inline bool is_usual(const Words& record, const Possible& possible) {
  if (!kUsual[record.w3 >> 32 & 0xffff] || record.w2 >> 48 != 0 ||
      (record.flags() & wire::kLong) != 0) [[unlikely]]
    return is_possible(record, possible);
  const uint64_t since = record.start() - possible.first_ticks;
  return bool((since < possible.reach_ticks) &
              (since + uint32_t(record.w1) < possible.reach_ticks) &
              possible.is_id(record.file()));
}

Reason why_impossible(const Words& record, const Possible& possible) {
  const OpLimits& limits = kLimits[record.op()];
  if (!limits.is_known) return Reason::record_op;
  if (!kKnownLayers[record.layer()]) return Reason::record_layer;
  if (!possible.is_time(record.start()) || !possible.is_time(record.end()))
    return Reason::record_time;
  if (!possible.is_id(record.file() & limits.names)) return Reason::record_name;
  return kOps[record.op()].layer == wire::Layer::mpi ? Reason::record_routine
                                                     : Reason::record_size;
}

}  // namespace

// One chunk while it is checked.
class Checks::Chunk {
 public:
  Chunk(const Mapping& file, const weir_reader_chunk& chunk) : file_(file), chunk_(chunk) {}

  template <bool has_sums>
  void check(const Possible& possible) {
    const char* at = file_.data() + chunk_.offset + sizeof(wire::ChunkHeader);
    uint64_t hole = kNoHole;  // the first record that was not written; behind it there are none
    for (uint64_t i = 0; i < chunk_.entries; ++i, at += sizeof(Words)) {
      const uint64_t last = last_word(at);
      if (last == 0) {
        if (hole == kNoHole) hole = i;
        continue;
      }
      const Words record = with_last(at, last);
      if (has_sums && !wire::is_sound(record.w0, record.w1, record.w2, record.w3)) [[unlikely]] {
        damaged(Reason::record_sum, i);
        continue;
      }
      if (!is_possible(record, possible)) [[unlikely]] {
        damaged(why_impossible(record, possible), i);
        continue;
      }
      if (hole != kNoHole) [[unlikely]] {
        problems_.add(Reason::record_hole, place_of(hole), sizeof(Words));
        hole = kNoHole;
      }
    }
  }

  const std::vector<weir_reader_problem>& problems() const { return problems_.list(); }
  const std::vector<uint64_t>& damaged() const { return damaged_; }

 private:
  static constexpr uint64_t kNoHole = ~uint64_t{0};

  uint64_t place_of(uint64_t record) const {
    return chunk_.offset + sizeof(wire::ChunkHeader) + record * sizeof(Words);
  }

  void damaged(Reason reason, uint64_t record) {
    problems_.add(reason, place_of(record), sizeof(Words));
    damaged_.push_back(record);
  }

  const Mapping& file_;
  const weir_reader_chunk& chunk_;
  Problems problems_;
  std::vector<uint64_t> damaged_;
};

// Without a branch for each question, but for holes, of which the end of a log alone has some.
template <bool has_sums>
bool Checks::Pieces::all_sound(const char* at, uint64_t records) {
  const Possible possible = possible_;
  bool sound = true, has_hole = has_hole_;
  for (const char* const end = at + records * sizeof(Words); at != end; at += sizeof(Words)) {
    const uint64_t last = last_word(at);
    if (last == 0) [[unlikely]] {
      has_hole = true;
      continue;
    }
    const Words record = with_last(at, last);
    sound &= is_usual(record, possible) & !has_hole;
    if (has_sums) sound &= wire::is_sound(record.w0, record.w1, record.w2, last);
  }
  has_hole_ = has_hole;
  return sound;
}

bool Checks::Pieces::is_sound(const char* at, uint64_t records) {
  return has_sums_ ? all_sound<true>(at, records) : all_sound<false>(at, records);
}

void Checks::check(const Mapping& file, weir_reader_chunk& chunk) const {
  if (chunk.kind != uint32_t(wire::Kind::kEvents) || is_checked(chunk)) return;
  Pieces pieces(*this, chunk);
  if (pieces.is_sound(file.data() + chunk.offset + sizeof(wire::ChunkHeader), chunk.entries))
    return pieces.end();
  Chunk one(file, chunk);
  if (has_sums_) one.check<true>(possible_[chunk.process]);
  else one.check<false>(possible_[chunk.process]);
  if (!one.problems().empty()) {
    const std::lock_guard lock(mutex_);
    if (!one.damaged().empty())
      file.blank(chunk.offset, chunk.entries * sizeof(Words), one.damaged(), sizeof(Words));
    found_.insert(found_.end(), one.problems().begin(), one.problems().end());
  }
  pieces.end();
}

void Checks::check_all(const Mapping& file, Index& index, unsigned threads) const {
  each_in_parallel(std::max(threads, 1u), index.chunks.size(), [&](size_t, size_t i) {
    check(file, index.chunks[i]);
    file.done(index.chunks[i].size_bytes);
  });
}

std::vector<weir_reader_problem> Checks::take_found() const {
  const std::lock_guard lock(mutex_);
  return std::exchange(found_, {});
}

// A process that has not ended may have records that are younger than what was read of it.
void Checks::begin(const Mapping& file, const Index& index, const Names& names, bool is_damaged) {
  has_sums_ = index.version >= wire::kChecked;
  const uint64_t created = index.header.created_ticks;
  const double slack = double(kSlackNs) / index.header.ns_per_tick;
  const bool has_clock = slack > 0 && slack < double(kTimeReach);
  possible_.assign(index.processes.size(), {created - kTimeReach, 2 * kTimeReach, {}});
  uint64_t last = 0;
  for (const auto& process : index.processes) {
    if (process.whole == 0) continue;
    const auto its = file.copy<wire::ProcessChunk>(process.offset);
    last = std::max({last, its.last_ticks, its.end_ticks});
  }
  for (uint32_t p = 0; p < index.processes.size(); ++p) {
    Possible& possible = possible_[p];
    possible.most_ids = {~uint32_t{0}, ~uint32_t{0}};
    if (index.processes[p].whole == 0 || is_damaged) continue;
    const auto its = file.copy<wire::ProcessChunk>(index.processes[p].offset);
    if (its.end_ticks == 0) continue;
    if (has_clock && its.start_ticks >= created && its.end_ticks >= its.start_ticks &&
        last - created < kTimeReach) {
      possible.first_ticks = its.start_ticks - std::min(its.start_ticks, uint64_t(slack));
      possible.reach_ticks = last + uint64_t(slack) - possible.first_ticks;
    }
    // A process without any name has lost its names.
    const auto most = names.most_ids_of(p);
    if (most[0] + most[1] != 0) possible.most_ids = most;
  }
}

}  // namespace weir::reader
