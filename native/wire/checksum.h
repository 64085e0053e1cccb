// SPDX-License-Identifier: Apache-2.0
// Checksums of a trace: what a record, a name, a chunk's header, a process and the file's header
// have of themselves, by which a reader finds that one of them was changed. Decides what is
// covered; docs/formats/trace.md states it (section 3.9).
#pragma once

#include <string.h>

#include "wire/format.h"

namespace weir::wire {

// Of the four words of a record without their checksum. The sum of the bytes of their exclusive or:
// one changed bit changes it by a power of two.
// cost: four instructions, without the exclusive or.
constexpr uint64_t kEachByte = 0x0101010101010101;
constexpr uint64_t record_sum(uint64_t words) { return words * kEachByte >> 56; }

// A failed call has its errno where others have their checksum, and the checksum above the 40 bits
// of the size that it asked for.
constexpr uint64_t kMostFailedSize = (uint64_t{1} << 40) - 1;

// Whether the checksum of a record is the right one. w3 is not 0.
constexpr bool is_sound(uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3) {
  const uint64_t sum = ((w3 >> 48 & kError) != 0 ? w2 : w3) >> 56;
  return record_sum(w0 ^ w1 ^ w2 ^ w3 ^ sum << 56) == sum;
}

// Takes bytes in pieces; another bit anywhere gives another value.
class Digest {
 public:
  Digest& add(const void* from, size_t bytes) {
    const auto* at = static_cast<const char*>(from);
    for (; bytes >= sizeof(uint64_t); at += sizeof(uint64_t), bytes -= sizeof(uint64_t)) {
      uint64_t word;
      memcpy(&word, at, sizeof word);
      mix(word);
    }
    uint64_t word = bytes;
    for (size_t i = 0; i < bytes; ++i)
      word = word << 8 | static_cast<uint8_t>(at[i]);
    mix(word);
    return *this;
  }

  // Never 0: that is a place where nobody has stored one.
  uint32_t value() const {
    const auto folded = static_cast<uint32_t>(state_ >> 32);
    return folded != 0 ? folded : 1;
  }

 private:
  void mix(uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15;
    state_ ^= state_ >> 29;
  }

  uint64_t state_ = 0x2545f4914f6cdd1d;
};

// Upper bits of a name's source, stored behind its text: 0 where the writer did not come so far.
constexpr unsigned kNameSumShift = 3;
constexpr uint16_t kNameSourceMask = (1 << kNameSumShift) - 1;
inline uint16_t name_sum(uint32_t id, NameSource source, const char* text, size_t bytes) {
  const uint64_t head = uint64_t{id} << 16 | (static_cast<uint16_t>(source) & kNameSourceMask);
  const uint32_t sum = Digest().add(text, bytes).add(&head, sizeof head).value();
  const auto upper = static_cast<uint16_t>(sum >> 16 & ~uint32_t{kNameSourceMask});
  return upper != 0 ? upper : uint16_t{1 << kNameSumShift};
}

// All but `used`, and the checksum itself.
inline uint32_t chunk_sum(const ChunkHeader& head) {
  const uint32_t words[] = {kChunkMagic, static_cast<uint32_t>(head.kind), head.process,
                            head.thread, head.entry_bytes};
  const uint64_t more[] = {head.size_bytes, head.taken_ticks, head.log, head.sequence};
  return Digest().add(words, sizeof words).add(more, sizeof more).value();
}

// What does not change while a process lives.
inline uint32_t process_sum(const ProcessChunk& p) {
  const uint32_t words[] = {p.pid, p.ppid, p.parent};
  const uint64_t more[] = {p.start_ticks, p.start_mono_ns, p.start_realtime_ns};
  return Digest()
      .add(words, sizeof words)
      .add(more, sizeof more)
      .add(p.exe, sizeof p.exe)
      .add(p.cwd, sizeof p.cwd)
      .add(p.command, sizeof p.command)
      .value();
}

// Its place in a parallel program.
inline uint32_t rank_sum(const ProcessChunk& p) {
  const uint32_t words[] = {static_cast<uint32_t>(p.rank), static_cast<uint32_t>(p.ranks),
                            static_cast<uint32_t>(p.rank_source), static_cast<uint32_t>(p.mpi)};
  return Digest().add(words, sizeof words).add(&p.world, sizeof p.world).value();
}

// All but what changes: end_bytes, refused, launcher, job.
inline uint32_t file_sum(const FileHeader& head) {
  const uint64_t launch = head.launch;
  return Digest()
      .add(&head, offsetof(FileHeader, end_bytes))
      .add(&head.created_realtime_ns,
           offsetof(FileHeader, refused) - offsetof(FileHeader, created_realtime_ns))
      .add(head.node, sizeof head.node)
      .add(&launch, sizeof launch)
      .value();
}

}  // namespace weir::wire
