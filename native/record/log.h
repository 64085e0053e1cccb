// SPDX-License-Identifier: Apache-2.0
// A thread's log: where its records or counters go. Takes no lock and calls nothing on the usual path; a new chunk is taken with
// the thread's signals held back. A record becomes part of the trace with its last word; SIGKILL loses at most that one.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "record/process.h"
#include "wire/format.h"

namespace weir::record {

struct CounterIndex;  // of one log: (file, operation, flags) to counter

struct ThreadLog {
  uint64_t* used;  // in the chunk's header; of a chunk of capacity 0 before the first
  wire::Record* records;
  uint64_t capacity;
  uint8_t flags_below;  // added to each record
  bool in_vfork_child;  // shares its parent's memory: must not change the descriptor table
  bool registered;      // parks its log when the thread ends
  uint32_t generation;  // of the process (forks) that it belongs to
  wire::ChunkHeader* chunk;
  uint64_t sequence;
  // Counters, at levels below trace.
  wire::Counter* last_counter;
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

WEIR_COLD void keep_slowly(const Call& call);
// Counts a call at level summary or detail.
void keep_counted(const Call& call);

// Drops all logs of the process: in a forked child, whose chunks they are not.
void forget_logs();
// The calling thread alone: in fork's child, at once.
void forget_own_log();
// Makes thread ends known (needs libc to be up).
void begin_logs();

// Keeps one call. Thread- and signal-safe; never touches errno. Inlined, and its one rare way out takes a copy, so that a hook's
// Call lives in registers. Usual is what fits the record as it is: duration and size in 32 bits, the offset in 48.
WEIR_INLINE void keep(const Call& call) {
  ThreadLog& log = thread_log;
  const uint64_t duration = call.end - call.start;
  const uint64_t flags = call.flags | log.flags_below;
  const uint64_t unusual = (duration | call.size) >> 32 | call.offset >> 48;
  if (WEIR_LIKELY(unusual == 0 && log.capacity != 0)) {
    const uint64_t at = base::own_fetch_add(log.used, 1);
    if (WEIR_LIKELY(at < log.capacity)) {
      auto* word = reinterpret_cast<uint64_t*>(log.records + at);
      word[0] = call.start;
      word[1] = duration | uint64_t{call.file} << 32;
      word[2] = call.offset;
      base::store(&word[3], call.size | uint64_t{static_cast<uint8_t>(call.op)} << 32 |
                                       uint64_t{static_cast<uint8_t>(call.layer)} << 40 | flags << 48 | uint64_t{call.error} << 56);
      return;
    }
  }
  Call rare = call;
  rare.flags = static_cast<uint8_t>(flags);
  keep_slowly(rare);
}

}  // namespace weir::record
