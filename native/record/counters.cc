// SPDX-License-Identifier: Apache-2.0
// Levels summary and detail, and what no longer fits at level trace: a counter per operation, or per file and operation.
#include "os/syscall.h"
#include "record/counter_index.h"
#include "record/log.h"

namespace weir::record {
namespace {

constexpr uint64_t kFirstBytes = 4096;
constexpr uint8_t kKeyFlags = wire::kBelow | wire::kNested;

// The first eight bytes of the call's counter, which no other counter of the log has. Never 0: no operation is.
uint64_t key_of(const Call& call, uint32_t file) {
  return uint64_t{file} | uint64_t{static_cast<uint8_t>(call.op)} << 32 | uint64_t{static_cast<uint8_t>(call.layer)} << 40 |
         uint64_t{static_cast<uint8_t>(call.flags & kKeyFlags)} << 48;
}

wire::Counter* take_counter(ThreadLog& log, Use use, Refusal* refusal) {
  wire::ChunkHeader* chunk = log.counter_chunk;
  if (chunk == nullptr || chunk->used >= (chunk->size_bytes - sizeof *chunk) / sizeof(wire::Counter)) {
    uint64_t size = chunk == nullptr ? kFirstBytes : chunk->size_bytes * 2;
    if (size > wire::kMaxChunkBytes) size = wire::kMaxChunkBytes;
    if (use == Use::totals) size = kFirstBytes;  // what is left is for many threads
    chunk = process().take_chunk(wire::Kind::kCounters, use, size, sizeof(wire::Counter), refusal);
    if (chunk == nullptr) return nullptr;
    chunk->log = log.counter_chunk != nullptr ? log.counter_chunk->log : reinterpret_cast<uint64_t>(chunk);
    chunk->sequence = log.counter_sequence++;
    log.counter_chunk = chunk;  // full ones stay mapped: their counters go on counting
  }
  return reinterpret_cast<wire::Counter*>(chunk + 1) + chunk->used++;
}

// The counter of the call's file and operation, made when it is not there. Signals are held back meanwhile.
wire::Counter* counter_of(ThreadLog& log, const Call& call, uint32_t file, Refusal* refusal) {
  const uint64_t key = key_of(call, file);
  os::SignalsBlocked blocked;
  CounterIndex* index = grow_index(log.index);
  if (index == nullptr) return nullptr;
  log.index = index;
  CounterIndex::Slot* slot = find_slot(index, key);
  if (slot->key == 0) {
    wire::Counter* counter = take_counter(log, file != 0 ? Use::files : Use::totals, refusal);
    if (counter == nullptr) return nullptr;
    counter->first_ticks = call.start;
    __atomic_store_n(reinterpret_cast<uint64_t*>(counter), key, __ATOMIC_RELEASE);
    *slot = {key, counter};
    ++index->filled;
  }
  log.last_counter = slot->counter;
  return slot->counter;
}

void count(wire::Counter* c, const Call& call) {
  const uint64_t duration = call.end - call.start;
  base::own_add(&c->calls, 1);
  base::own_add(&c->ticks, duration);
  if ((call.flags & wire::kError) != 0) {
    base::own_add(&c->errors, 1);
  } else {
    base::own_add(&c->bytes, call.size);
    base::own_add(&c->by_size[wire::bin_of(call.size)], 1);
  }
  base::own_add(&c->by_duration[wire::bin_of(duration)], 1);
  c->last_ticks = call.end;
}

}  // namespace

void keep_counted(const Call& call) {
  ThreadLog& log = thread_log;
  Process& p = process();
  const uint32_t file = p.level() != wire::Level::kSummary ? call.file : 0;
  wire::Counter* const last = log.last_counter;
  if (WEIR_LIKELY(last != nullptr && *reinterpret_cast<const uint64_t*>(last) == key_of(call, file))) return count(last, call);
  Refusal refusal = Refusal::none;
  wire::Counter* counter = counter_of(log, call, file, &refusal);
  if (counter == nullptr && file != 0) {
    if (refusal == Refusal::final) p.step_down(wire::Level::kSummary);
    counter = counter_of(log, call, 0, &refusal);
  }
  if (counter == nullptr) return p.count_lost(1);
  count(counter, call);
}

}  // namespace weir::record
