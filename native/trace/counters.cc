// SPDX-License-Identifier: Apache-2.0
// Levels summary and detail, and what no longer fits at level trace: a counter per operation, or
// per file and operation.
#include "base/frames.h"
#include "base/syscall.h"
#include "trace/counter_index.h"
#include "trace/log.h"

namespace weir::trace {
namespace {

constexpr uint64_t kFirstBytes = 4096;
using wire::kKeyFlags;

constexpr uint64_t kKeyOfAll = uint64_t{0xffff} << 32 | uint64_t{kKeyFlags} << 48;
constexpr uint64_t kKeyOfFile = kKeyOfAll | UINT32_MAX;
constexpr uint64_t kFormOfHistogram = uint64_t{static_cast<uint8_t>(wire::Form::kHistogram)} << 56;

// The first eight bytes of the call's counter, which no other counter of the log has. Never 0: no
// operation is.
uint64_t key_of(const Call& call, uint32_t file) {
  return (head_of(call, call.flags) & kKeyOfAll) | file;
}
uint64_t key_of(const wire::Counter* counter) {
  return *reinterpret_cast<const uint64_t*>(counter);
}

// The first eight bytes of the histogram that the counter of the key shares.
uint64_t histogram_key_of(uint64_t key) {
  return (key & kKeyOfAll) | kFormOfHistogram | ((key & wire::kOtherNames) != 0 ? 1 : 0);
}

// Counters stay mapped and resident, and so does the unused end of a chunk: chunks do not double,
// as those of records do, but every second one is a page larger.
uint64_t next_chunk_bytes(const ThreadLog& log, Use use) {
  if (use == Use::totals) return kFirstBytes;  // what is left is for many threads
  const uint64_t size = kFirstBytes + log.counter_sequence / 2 * wire::kPageBytes;
  return size < wire::kMaxChunkBytes ? size : wire::kMaxChunkBytes;
}

// Takes entries that follow one another.
void* take_entries(ThreadLog& log, uint64_t count, Use use, Refusal* refusal) {
  wire::ChunkHeader* chunk = log.counter_chunk;
  if (chunk == nullptr ||
      chunk->used + count > (chunk->size_bytes - sizeof *chunk) / sizeof(wire::Counter)) {
    const uint64_t size = next_chunk_bytes(log, use);
    chunk = process().take_chunk(wire::Kind::kCounters, use, size, sizeof(wire::Counter), refusal);
    if (chunk == nullptr) return nullptr;
    chunk->log =
        log.counter_chunk != nullptr ? log.counter_chunk->log : reinterpret_cast<uint64_t>(chunk);
    chunk->sequence = log.counter_sequence++;
    chunk->sum = wire::chunk_sum(*chunk);
    log.counter_chunk = chunk;  // full ones stay mapped: their counters go on counting
  }
  void* const taken = reinterpret_cast<wire::Counter*>(chunk + 1) + chunk->used;
  chunk->used += count;
  return taken;
}

// Stores the entry's first word, which makes it part of the trace; then it can be found.
template <class Entry>
void commit(CounterIndex* index, Entry* entry, uint64_t key) {
  base::store(reinterpret_cast<uint64_t*>(entry), key);
  insert(index, reinterpret_cast<uint64_t*>(entry));
}

// An index with room for one more key, or null.
CounterIndex* index_with_room(ThreadLog& log) {
  CounterIndex* const index = grow_index(log.index);
  if (index == nullptr || index == log.index) return index;
  base::store(&log.index, index);
  if (!base::may_be_in_handler()) forget_older(index);
  return index;
}

wire::Histogram* histogram_of(ThreadLog& log, uint64_t key, Use use, Refusal* refusal) {
  CounterIndex* const index = index_with_room(log);
  if (index == nullptr) return nullptr;
  auto* known = reinterpret_cast<wire::Histogram*>(find_entry(index, key));
  if (known != nullptr) return known;
  auto* histogram =
      static_cast<wire::Histogram*>(take_entries(log, wire::kHistogramEntries, use, refusal));
  if (histogram != nullptr) commit(index, histogram, key);
  return histogram;
}

wire::Counter** recent_of(ThreadLog& log, uint64_t key) { return &log.recent[key >> 32 & 7]; }

// The counter of the key, or null when there is none yet.
wire::Counter* known_counter(ThreadLog& log, uint64_t key) {
  CounterIndex* const index = base::load_relaxed(&log.index);
  if (index == nullptr) return nullptr;
  return reinterpret_cast<wire::Counter*>(find_entry(index, key));
}

// The counter of the call's file and operation, made when it is not there. Signals are held back
// meanwhile.
wire::Counter* make_counter(ThreadLog& log, const Call& call, uint32_t file, Refusal* refusal) {
  if (base::sealed()) return nullptr;
  const uint64_t key = key_of(call, file);
  const Use use = file != 0 ? Use::files : Use::totals;
  base::SignalsBlocked blocked;
  wire::Counter* counter = known_counter(log, key);  // by a handler, meanwhile
  if (counter != nullptr) return counter;
  wire::Histogram* const histogram = histogram_of(log, histogram_key_of(key), use, refusal);
  if (histogram == nullptr) return nullptr;
  CounterIndex* const index = index_with_room(log);
  if (index == nullptr) return nullptr;
  counter = static_cast<wire::Counter*>(take_entries(log, 1, use, refusal));
  if (counter == nullptr) return nullptr;
  counter->first_ticks = call.start;
  counter->histogram = reinterpret_cast<uint64_t>(&histogram->bins);
  commit(index, counter, key);
  return counter;
}

wire::Counter* counter_of(ThreadLog& log, const Call& call, uint32_t file, Refusal* refusal) {
  wire::Counter* counter = known_counter(log, key_of(call, file));
  if (counter == nullptr) counter = make_counter(log, call, file, refusal);
  if (counter != nullptr) *recent_of(log, key_of(call, file)) = counter;
  return counter;
}

inline void count(wire::Counter* c, bool failed, uint64_t start, uint64_t end, uint64_t size) {
  const uint64_t duration = end - start;
  auto* const bins = reinterpret_cast<wire::Bins*>(c->histogram);
  if (WEIR_LIKELY(!failed)) {
    base::own_add(&c->bytes, size);
    base::own_add(&bins->by_size[wire::bin_of(size)], 1);
  } else {
    base::own_add(&c->errors, 1);
  }
  base::own_add(&c->calls, 1);
  base::own_add(&c->ticks, duration);
  base::own_add(&bins->by_duration[wire::bin_of(duration)], 1);
  c->last_ticks = end;
}

}  // namespace

void record_slowly(uint64_t head, uint64_t start, uint64_t end, uint64_t offset, uint64_t size) {
  ThreadLog& log = thread_log;
  if (WEIR_LIKELY(log.counting)) {
    const uint64_t key = head & log.key_mask;
    wire::Counter** const recent = recent_of(log, key);
    wire::Counter* counter = *recent;
    if (WEIR_UNLIKELY(counter == nullptr || key_of(counter) != key))
      *recent = counter = known_counter(log, key);
    if (WEIR_LIKELY(counter != nullptr))
      return count(counter, (head >> 48 & wire::kError) != 0, start, end, size);
  }
  record_otherwise({static_cast<wire::Op>(head >> 32), static_cast<wire::Layer>(head >> 40),
                    static_cast<uint8_t>(head >> 48), static_cast<uint8_t>(head >> 56),
                    static_cast<uint32_t>(head), start, end, offset, size});
}

void count_call(const Call& call) {
  if (call.op == wire::Op::kSync) return;  // a timestamp to align clocks by: nothing that adds up
  ThreadLog& log = thread_log;
  Process& p = process();
  const bool by_file = p.level() != wire::Level::kSummary;
  log.key_mask = by_file ? kKeyOfFile : kKeyOfAll;
  const uint32_t file = by_file ? call.file : 0;
  Refusal refusal = Refusal::none;
  wire::Counter* counter = counter_of(log, call, file, &refusal);
  if (counter == nullptr && file != 0) {
    if (refusal == Refusal::final) p.step_down(wire::Level::kSummary);
    counter = counter_of(log, call, 0, &refusal);
  }
  if (counter == nullptr) return p.count_lost(1);
  count(counter, (call.flags & wire::kError) != 0, call.start, call.end, call.size);
}

}  // namespace weir::trace
