// SPDX-License-Identifier: Apache-2.0
// The calls of a rank: records of some processes, chunk by chunk in the order in which chunks
// begin.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "reader/clock.h"
#include "reader/hidden.h"
#include "reader/times.h"

namespace weir::reader {

enum Kind : uint8_t { kFileIo = 1, kMpiCall = 2, kLibraryCall = 4, kAllKinds = 7 };

// What layers of records are, when their operation is a call; I/O is also asked for its file.
inline constexpr std::array<uint8_t, 256> kKinds = [] {
  std::array<uint8_t, 256> kinds{};
  for (unsigned layer = 0; layer <= unsigned(wire::Layer::mpi); ++layer) kinds[layer] = kFileIo;
  for (wire::Layer layer : {wire::Layer::mpi, wire::Layer::mpi_io})
    kinds[unsigned(layer)] |= kMpiCall;
  for (wire::Layer layer : {wire::Layer::output, wire::Layer::pnetcdf, wire::Layer::netcdf,
                            wire::Layer::hdf5})
    kinds[unsigned(layer)] |= kLibraryCall;
  kinds[unsigned(wire::Layer::fortran)] = kLibraryCall;  // the calls below it are I/O
  return kinds;
}();

// Of an operation the kinds that its records may be, 0 where it is no call. Layers of other kinds
// than none are known ones.
inline constexpr std::array<uint8_t, 256> kKindsOfOp = [] {
  std::array<uint8_t, 256> kinds{};
  for (size_t op = 0; op < 256; ++op) {
    if (kIsIo[op]) kinds[op] = kAllKinds;
    else if (kOps[op].treatment == Treatment::silent) kinds[op] = kAllKinds & ~kFileIo;
  }
  return kinds;
}();

// A process of a trace file whose records count. before: the times of its chunks are known.
struct Member {
  const Mapping* file;
  const Index* index;
  const Names* names;
  weir_reader_clock clock;
  uint32_t process, thread;
  bool is_whole;  // all threads are on the line, else the one of this number

  bool is_on_line(uint32_t of) const { return is_whole || of == thread; }
};

// A record of a call as the passes over calls see it.
struct CallRecord {
  int64_t start_ns, end_ns;
  uint32_t file, thread;
  uint8_t op, kinds;  // bits of Kind, 0: none of them
  bool has_own_time;
};

class Calls {
 public:
  explicit Calls(std::vector<Member> members) : members_(std::move(members)) {
    for (uint32_t at = 0; at < members_.size(); ++at) {
      const Member& member = members_[at];
      hidden_.emplace_back(*member.names, member.process);
      for (uint64_t i = 0; i < member.index->chunks.size(); ++i) {
        const auto& chunk = member.index->chunks[i];
        if (has_calls(chunk) && chunk.process == member.process)
          order_.push_back({timestamp_ns(member.clock, chunk.first_ticks), at, i});
      }
    }
    std::sort(order_.begin(), order_.end());
  }

  size_t chunks() const { return order_.size(); }
  const Member& member_of(size_t chunk) const { return members_[order_[chunk].member]; }
  uint32_t member_at(size_t chunk) const { return order_[chunk].member; }

  // No call of the chunks behind this one begins before.
  int64_t limit(size_t chunk) const {
    return chunk + 1 < order_.size() ? order_[chunk + 1].begin_ns
                                     : std::numeric_limits<int64_t>::max();
  }

  // From when until when the calls of a chunk are.
  int64_t begin_of(size_t chunk) const { return order_[chunk].begin_ns; }
  int64_t end_of(size_t chunk) const {
    return timestamp_ns(member_of(chunk).clock, at(chunk).last_ticks);
  }

  // Hands each call of a chunk to `take`, in the order in which they ended; the chunk leaves
  // memory.
  template <class Take>
  void each(size_t number, Take take) const {
    const Member& member = member_of(number);
    const auto& chunk = at(number);
    const Hidden& hidden = hidden_[member_at(number)];
    const weir_reader_clock clock = member.clock;
    uint32_t thread = chunk.thread;
    const char* from = member.file->records(chunk.offset);
    for (const char* end = from + chunk.entries * sizeof(Words); from != end;
         from += sizeof(Words)) {
      const Words record = Words::load(from);
      const uint8_t op = record.op();
      if (kOps[op].treatment == Treatment::thread) {
        thread = uint32_t(record.size());
        continue;
      }
      uint8_t kinds = kKinds[record.layer()] & kKindsOfOp[op];
      if ((kinds & kFileIo) != 0 && hidden.hides(record.file())) kinds &= uint8_t(~kFileIo);
      if (kinds == 0) continue;
      take(CallRecord{timestamp_ns(clock, record.start()), timestamp_ns(clock, record.end()),
                      record.file(), thread, op, kinds, record.has_own_time()});
    }
    member.file->done(chunk.size_bytes);
  }

 private:
  struct Place {
    int64_t begin_ns;
    uint32_t member;
    uint64_t chunk;
    auto operator<=>(const Place&) const = default;
  };

  const weir_reader_chunk& at(size_t number) const {
    return member_of(number).index->chunks[order_[number].chunk];
  }

  std::vector<Member> members_;
  std::vector<Hidden> hidden_;
  std::vector<Place> order_;
};

}  // namespace weir::reader
