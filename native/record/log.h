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

extern WEIR_THREAD ThreadLog thread_log;

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

inline void write_record(wire::Record* r, const Call& call) {
  uint64_t duration = call.end - call.start;
  uint8_t flags = call.flags;
  if (WEIR_UNLIKELY(duration > UINT32_MAX)) {
    duration >>= wire::kLongShift;
    if (duration > UINT32_MAX) duration = UINT32_MAX;
    flags |= wire::kLong;
  }
  r->start = call.start;
  r->duration = static_cast<uint32_t>(duration);
  r->file = call.file;
  r->offset_and_size_high = (call.offset & wire::kUnknownOffset) | (call.size >> 32) << 48;
  const uint64_t last = (call.size & UINT32_MAX) | uint64_t{static_cast<uint8_t>(call.op)} << 32 |
                        uint64_t{static_cast<uint8_t>(call.layer)} << 40 | uint64_t{flags} << 48 | uint64_t{call.error} << 56;
  __atomic_store_n(reinterpret_cast<uint64_t*>(&r->size_low), last, __ATOMIC_RELEASE);
}

// Keeps one call. Thread- and signal-safe; never touches errno.
inline void keep(Call call) {
  ThreadLog& log = thread_log;
  call.flags |= log.flags_below;
  if (WEIR_LIKELY(log.capacity != 0)) {
    const uint64_t at = base::own_fetch_add(log.used, 1);
    if (WEIR_LIKELY(at < log.capacity)) {
      write_record(log.records + at, call);
      return;
    }
  }
  keep_slowly(call);
}

}  // namespace weir::record
