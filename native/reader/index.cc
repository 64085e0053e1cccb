// SPDX-License-Identifier: Apache-2.0
#include "base/round.h"
#include "reader/index.h"

#include <algorithm>

#include "wire/checksum.h"

namespace weir::reader {
namespace {

using wire::ChunkHeader;
using wire::Kind;
using wire::kPageBytes;

constexpr uint64_t kMostLateComers = wire::kMaxChunkBytes;

uint32_t entry_bytes_of(Kind kind, uint32_t version) {
  switch (kind) {
    case Kind::kEvents: return sizeof(wire::Record);
    case Kind::kCounters: return version == 1 ? sizeof(wire::WideCounter) : sizeof(wire::Counter);
    default: return 0;
  }
}

class Walk {
 public:
  Walk(const Mapping& file, Index& index, Problems& problems)
      : file_(file), index_(index), problems_(problems), window_(file) {}

  void run() {
    if (has_sums()) {
      const auto head = file_.copy<wire::FileHeader>(0);
      if (head.sum != wire::file_sum(head)) problems_.add(Reason::file_sum, 0);
    }
    const uint64_t end = std::min(index_.header.end_bytes, file_.size());
    uint64_t place = span(kPageBytes, end);
    if (place < file_.size()) beyond(std::max(place, base::round_up(end, kPageBytes)));
    window_.leave();
    resolve_processes();
  }

 private:
  uint64_t span(uint64_t place, uint64_t end) {
    while (place < end && file_.holds(place, sizeof(ChunkHeader))) place += step(place);
    return place;
  }

  // Chunks where the header says that nothing was taken: a damaged header. They are read, and said.
  void beyond(uint64_t place) {
    while (place < file_.size()) {
      place = std::max(
          place, file_.next_stored(place) / kPageBytes *
                     kPageBytes);  // behind the last byte that is stored: the end, within a page
      if (!file_.holds(place, sizeof(ChunkHeader))) return;
      if (file_.copy<uint32_t>(place) != wire::kChunkMagic) {
        place += kPageBytes;
        continue;
      }
      problems_.add(Reason::beyond_end, place, wire::kMaxChunkBytes);
      place += step(place);
    }
  }

  // Reads the chunk at `place`; returns how far the next one may be.
  uint64_t step(uint64_t place) {
    const auto head = file_.copy<ChunkHeader>(place);
    if (head.magic != wire::kChunkMagic) {
      // A process that was killed while it wrote its own chunk: the number of entries comes first,
      // the rest of the header last.
      if (head.magic == 0 && head.kind == Kind{} && head.size_bytes == 0 && head.used == 1)
        return kPageBytes;
      if (head.magic != 0 || !unwritten(place)) problems_.add(Reason::no_chunk, place, kPageBytes);
      return kPageBytes;
    }
    if (head.kind < Kind::kProcess || head.kind > Kind::kCounters)
      return refuse(Reason::chunk_kind, place);
    if (!plausible_size(head)) return refuse(Reason::chunk_size, place);
    if (has_sums() && head.sum != wire::chunk_sum(head) && !is_unfinished(head))
      return refuse(Reason::chunk_sum, place);
    if (head.entry_bytes != entry_bytes_of(head.kind, index_.version))
      return refuse(Reason::chunk_entry_bytes, place);
    if (uint64_t{head.process} * kPageBytes >= std::max(file_.size(), index_.header.end_bytes) ||
        head.process == 0) {
      return refuse(Reason::process_reference, place);
    }
    take(place, head);
    return head.size_bytes;
  }

  bool has_sums() const { return index_.version >= wire::kChecked; }

  // Killed between the chunk's header and its place in a log: it has no entry.
  static bool is_unfinished(const ChunkHeader& head) {
    return head.used == 0 && (head.kind == Kind::kEvents || head.kind == Kind::kCounters);
  }

  uint64_t refuse(Reason reason, uint64_t place) {
    problems_.add(reason, place);
    return kPageBytes;
  }

  static bool plausible_size(const ChunkHeader& head) {
    if (head.kind == Kind::kProcess) return head.size_bytes == kPageBytes;
    return head.size_bytes >= kPageBytes && head.size_bytes % kPageBytes == 0 &&
           head.size_bytes <= wire::kMaxChunkBytes;
  }

  // A page that its taker did not live to write: nothing behind the place of the header.
  bool unwritten(uint64_t place) const {
    const uint64_t end = std::min(place + kPageBytes, file_.size());
    const char* from = file_.data() + place + sizeof(ChunkHeader);
    return std::all_of(from, file_.data() + end, [](char c) { return c == 0; });
  }

  void take(uint64_t place, const ChunkHeader& head) {
    const uint64_t there = std::min(head.size_bytes, file_.size() - place) - sizeof(ChunkHeader);
    if (head.kind == Kind::kProcess) return take_process(place, head);
    const uint64_t unit = head.kind == Kind::kNames ? 1 : head.entry_bytes;
    const uint64_t room = (head.size_bytes - sizeof(ChunkHeader)) / unit;
    uint64_t entries = used_of(place, head, unit, std::min(room, there / unit));
    if (entries > room) {
      // Writers reserve by adding: those who found the chunk full have added, too.
      if (head.kind == Kind::kCounters || entries - room > kMostLateComers)
        problems_.add(Reason::chunk_used, place);
      entries = room;
    }
    if (entries > there / unit) {
      problems_.add(Reason::chunk_cut, place);
      entries = there / unit;
    }
    index_.chunks.push_back({place, head.size_bytes, entries, head.log, head.sequence,
                             head.taken_ticks, ~uint64_t{0}, 0, uint32_t(head.kind), head.process,
                             head.thread, 0, 0, 0});
    window_.take(place, head.size_bytes);
  }

  // How many entries were taken. They follow one another without a gap, so the place behind them is
  // zero; all those of a log are its own at once.
  uint64_t used_of(uint64_t place, const ChunkHeader& head, uint64_t unit, uint64_t most) {
    const uint64_t behind = place + sizeof(ChunkHeader) + head.used * unit;
    if (!has_sums() || head.used >= most || !file_.holds(behind, sizeof(uint64_t)))
      return head.used;
    const bool is_short = head.kind == Kind::kEvents && head.used != 0;
    if (!is_short && file_.copy<uint64_t>(behind) == 0) return head.used;
    const auto used = file_.copy<ChunkHeader>(place).used;
    if (used != head.used) return used;  // a living writer has taken more
    problems_.add(Reason::chunk_used, place);
    return most;
  }

  void take_process(uint64_t place, const ChunkHeader& head) {
    if (uint64_t{head.process} * kPageBytes != place) {
      problems_.add(Reason::process_reference, place);
      return;
    }
    if (!file_.holds(place, sizeof(wire::ProcessChunk))) {
      problems_.add(Reason::chunk_cut, place);
      return;
    }
    if (head.used == 0) return;  // killed while it wrote itself
    if (has_sums()) {
      const auto process = file_.copy<wire::ProcessChunk>(place);
      if (process.sum != wire::process_sum(process) || process.rank_sum != wire::rank_sum(process))
        problems_.add(Reason::process_sum, place);
    }
    index_.processes.push_back({place, 0, 0, head.process, 1});
  }

  // Chunks name the page of their process; from here on they name its index in the table.
  void resolve_processes() {
    std::unordered_map<uint32_t, uint32_t> at;
    for (uint32_t i = 0; i < index_.processes.size(); ++i) at.emplace(index_.processes[i].page, i);
    for (auto& chunk : index_.chunks) {
      auto [found, is_new] = at.emplace(chunk.process, uint32_t(index_.processes.size()));
      if (is_new) {
        problems_.add(Reason::process_missing, uint64_t{chunk.process} * kPageBytes);
        index_.processes.push_back({uint64_t{chunk.process} * kPageBytes, 0, 0, chunk.process, 0});
      }
      chunk.process = found->second;
    }
  }

  const Mapping& file_;
  Index& index_;
  Problems& problems_;
  Window window_;
};

std::string refusal(uint64_t offset, const std::string& what, uint64_t& place) {
  place = offset;
  return what;
}

}  // namespace

std::string read_header(const Mapping& file, Index& index, uint64_t& place) {
  if (!file.holds(0, kPageBytes)) {
    return refusal(file.size(), "the file ends within its header page of 4096 bytes", place);
  }
  const auto head = file.copy<wire::FileHeader>(0);
  if (std::memcmp(head.magic, wire::kMagic, sizeof head.magic) != 0) {
    return refusal(0, "not a trace of weir: the magic WEIRTRC1 is missing", place);
  }
  if (head.version < wire::kOldestVersion || head.version > wire::kVersion) {
    return refusal(
        8, "trace format " + std::to_string(head.version) + ", this reader knows 1, 2 and 3",
        place);
  }
  if (head.header_bytes != kPageBytes) return refusal(12, "header size is not 4096", place);
  if (head.record_bytes != sizeof(wire::Record)) return refusal(16, "record size is not 32", place);
  index.version = head.version;
  auto& out = index.header;
  out.clock = uint32_t(head.clock);
  out.level = uint32_t(head.level);
  out.budget_bytes = head.budget_bytes;
  out.end_bytes = head.end_bytes;
  out.file_bytes = file.size();
  out.created_realtime_ns = head.created_realtime_ns;
  out.created_mono_ns = head.created_mono_ns;
  out.created_ticks = head.created_ticks;
  out.refused = head.refused & wire::kRefusedCount;
  out.refused_by = (head.refused & wire::kRefusedBySizeLimit) != 0 ? WEIR_READER_BY_SIZE_LIMIT : 0;
  out.refused_by |= (head.refused & wire::kRefusedByMemory) != 0 ? WEIR_READER_BY_MEMORY : 0;
  out.ns_per_tick = head.ns_per_tick;
  std::memcpy(out.node, head.node, sizeof out.node - 1);
  return "";
}

constexpr uint64_t kFirstChunksBytes = 16384;  // what a process takes at its start, at most

// Space is taken before the file grows by it: who is killed in between leaves a file that ends with
// a whole chunk, too early.
static bool may_end_early(const Mapping& file, const Index& index) {
  uint64_t end = kPageBytes;
  for (const auto& chunk : index.chunks) end = std::max(end, chunk.offset + chunk.size_bytes);
  bool killed = false;
  for (const auto& process : index.processes) {
    if (process.whole == 0) continue;
    end = std::max(end, process.offset + kPageBytes);
    killed |= file.copy<wire::End>(process.offset + offsetof(wire::ProcessChunk, end_kind)) ==
              wire::End::kNone;
  }
  const uint64_t most = index.processes.empty() ? kFirstChunksBytes
                        : killed                ? wire::kMaxChunkBytes
                                                : 0;
  return file.size() == end && index.header.end_bytes - file.size() <= most;
}

void walk_chunks(const Mapping& file, Index& index, Problems& problems) {
  Walk(file, index, problems).run();
  if (file.size() < index.header.end_bytes && !may_end_early(file, index))
    problems.add(Reason::file_cut, file.size());
}

}  // namespace weir::reader
