// SPDX-License-Identifier: Apache-2.0
// A thread's log: where its records or counters go. Takes no lock and calls nothing on the usual
// path; a new chunk is taken with the thread's signals held back. A record becomes part of the
// trace with its last word; SIGKILL loses at most that one.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "trace/process.h"
#include "wire/checksum.h"

namespace weir::trace {

struct CounterIndex;  // of one log: (file, operation, flags) to counter

inline constexpr uint32_t kMostRetired = 16;  // full chunks that a log keeps mapped

// What every call needs comes first, in one line of the cache.
struct alignas(64) ThreadLog {
  uint64_t
      next;  // address of the next record's place; moves on past the chunk's end when it is full
  uint64_t begin;  // of the chunk's records
  uint64_t bytes;  // of the chunk's records; 0 without a chunk
  uint8_t flags_below;  // added to each record
  bool in_vfork_child;  // shares its parent's memory: must not change the descriptor table
  bool registered;      // parks its log when the thread ends
  bool counting;        // for good: what follows is never a record again
  uint32_t generation;  // of the process (forks) that it belongs to
  uint64_t key_mask;    // counting: of the head of a call, what its counter is found by, with the
                        // file or without
  wire::ChunkHeader* chunk;
  // Full chunks that are mapped still: a call which a signal handler interrupted may have a place
  // in one.
  wire::ChunkHeader* retired[kMostRetired];
  uint32_t retired_count;
  uint64_t sequence;
  uint32_t
      patience;  // calls to let pass before a chunk is asked for again that was refused for now
  wire::Counter* recent[8];  // by the operation's last bits: the counter last used, or null
  CounterIndex* index;
  wire::ChunkHeader* counter_chunk;
  uint64_t counter_sequence;
};

extern WEIR_OWN WEIR_THREAD ThreadLog thread_log;

struct Call {
  wire::Op op;
  wire::Layer layer;
  uint8_t flags;
  uint8_t error;
  uint32_t file;
  uint64_t start, end;  // trace clock
  uint64_t offset;      // wire::kUnknownOffset when not known
  uint64_t size;
};

// The last two words of a record with the checksum of all four.
WEIR_INLINE void store_checked(uint64_t* word, uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3) {
  const uint64_t sum = wire::record_sum(w0 ^ w1 ^ w2 ^ w3) << 56;
  const bool failed = (w3 >> 48 & wire::kError) != 0;
  word[2] = failed ? w2 | sum : w2;
  base::store(&word[3], failed ? w3 : w3 | sum);
}

// Operation, layer, flags and error where the last word of a record has them, above 32 bits for the
// size.
WEIR_INLINE uint64_t kind_of(const Call& call, uint64_t flags) {
  return uint64_t{static_cast<uint8_t>(call.op)} << 32 |
         uint64_t{static_cast<uint8_t>(call.layer)} << 40 | flags << 48 |
         uint64_t{call.error} << 56;
}
// The first word of a call's counter, and the error: the file below the kind.
WEIR_INLINE uint64_t head_of(const Call& call, uint64_t flags) {
  return uint64_t{call.file} | kind_of(call, flags);
}

// Keeps what is no usual record in a chunk with room. In registers: at levels below trace every
// call comes here.
WEIR_COLD void record_slowly(uint64_t head, uint64_t start, uint64_t end, uint64_t offset,
                             uint64_t size);
// The same when it is not even counted in the counter last used.
WEIR_COLD void record_otherwise(const Call& call);
// Counts a call instead.
void count_call(const Call& call);

// Drops all logs of the process: in a forked child, whose chunks they are not.
void forget_logs();
// The calling thread alone: in fork's child, at once.
void forget_own_log();
// Makes thread ends known (needs libc to be up).
void begin_logs();

// Keeps one call. Thread- and signal-safe; never touches errno. Inlined, and its one rare way out
// takes values, so that a hook's Call lives in registers. Usual is what fits the record as it is:
// duration and size in 32 bits, the offset in 48. before: recording() has been true in this
// call, and a call that did not fail has no error. A
// record without room is counted (count_call); one without a counter adds to Process::count_lost().
// Nothing is reported to the caller. Cost: 32 bytes stored, no lock, no system call. A new chunk,
// of 4 KiB first and then of twice the size each time, costs an open, storage and a mapping of the
// trace file.
template <bool wide>
WEIR_INLINE void record_call_as(const Call& call) {
  ThreadLog& log = thread_log;
  const uint64_t duration = call.end - call.start;
  const uint64_t flags = call.flags | log.flags_below;
  const uint64_t unusual = wide ? duration >> 32 | call.offset >> 48 | call.size >> 40
                                : (duration | call.size) >> 32 | call.offset >> 48;
  if (WEIR_LIKELY(unusual == 0)) {
    // A signal handler may change the chunk between any two of these lines. Read before the place
    // is taken, the bounds are those of an older chunk at worst: they then refuse a place in the
    // newer one.
    const uint64_t begin = base::load_relaxed(&log.begin);
    const uint64_t bytes = base::load_relaxed(&log.bytes);
    const uint64_t at = base::own_fetch_add(&log.next, sizeof(wire::Record));
    if (WEIR_LIKELY(at - begin < bytes)) {
      auto* word = reinterpret_cast<uint64_t*>(at);
      const uint64_t w1 = duration | uint64_t{call.file} << 32;
      word[0] = call.start;
      word[1] = w1;
      store_checked(word, call.start, w1,
                    wide ? call.offset | (call.size >> 32) << 48 : call.offset,
                    (wide ? call.size & UINT32_MAX : call.size) | kind_of(call, flags));
      return;
    }
  }
  record_slowly(head_of(call, flags), call.start, call.end, call.offset, call.size);
}

WEIR_INLINE void record_call(const Call& call) { record_call_as<false>(call); }
// For sizes that usually take more than 32 bits.
WEIR_INLINE void record_wide_call(const Call& call) { record_call_as<true>(call); }

}  // namespace weir::trace
