// SPDX-License-Identifier: Apache-2.0
#include "trace/log.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/frames.h"
#include "base/syscall.h"
#include "trace/counter_index.h"

namespace weir::trace {

WEIR_THREAD ThreadLog thread_log;

namespace {

constexpr uint64_t kFirstEventsBytes = 4096;
constexpr int kParked = 64;
constexpr uint32_t kPatience = 64;
// Of a chunk: while chunks are smaller, retired ones are not worth a look at the stack.
constexpr uint64_t kFewBytes = 64u << 10;

constinit uint32_t generation = 1;
constinit ThreadLog* parked[kParked] = {};  // logs of threads that ended, for the next ones
constinit pthread_key_t end_of_thread = 0;
constinit bool ends_known = false;

// Any call, usual or not, into a place that was taken for it.
void write_record(wire::Record* r, const Call& call) {
  uint64_t duration = call.end - call.start;
  uint8_t flags = call.flags;
  if (duration > UINT32_MAX) {
    duration >>= wire::kLongShift;
    if (duration > UINT32_MAX) duration = UINT32_MAX;
    flags |= wire::kLong;
  }
  uint64_t size = call.size;
  if ((flags & wire::kError) != 0 && size > wire::kMostFailedSize) size = wire::kMostFailedSize;
  auto* word = reinterpret_cast<uint64_t*>(r);
  const uint64_t w1 = duration | uint64_t{call.file} << 32;
  word[0] = call.start;
  word[1] = w1;
  store_checked(word, call.start, w1, (call.offset & wire::kUnknownOffset) | (size >> 32) << 48,
                (size & UINT32_MAX) | kind_of(call, flags));
}

// Null when the log has no chunk, or a full one.
wire::Record* take_place(ThreadLog& log) {
  const uint64_t at = base::own_fetch_add(&log.next, sizeof(wire::Record));
  return at - log.begin < log.bytes ? reinterpret_cast<wire::Record*>(at) : nullptr;
}

// Another log for the thread, which is in the midst of what it was in.
void replace(ThreadLog& log, const ThreadLog& with) {
  const uint8_t flags_below = log.flags_below;
  const bool in_vfork_child = log.in_vfork_child;
  log = with;
  log.flags_below = flags_below;
  log.in_vfork_child = in_vfork_child;
}

// Calls that handlers interrupted, if there are any, are over: handlers have jumped out of them, or
// the thread ends.
void free_retired(ThreadLog& log) {
  while (log.retired_count != 0) process().give_back(log.retired[--log.retired_count]);
}

// The log goes on without a chunk. One more than kMostRetired stays mapped for good.
void retire_chunk(ThreadLog& log) {
  if (log.retired_count < kMostRetired) log.retired[log.retired_count++] = log.chunk;
  log.chunk = nullptr;
  log.bytes = 0;
}

// Every place has its record: no interrupted call has one to write.
bool is_whole(const wire::ChunkHeader* chunk) {
  const auto* last_word = reinterpret_cast<const uint64_t*>(chunk + 1) + 3;
  const auto* const end =
      reinterpret_cast<const uint64_t*>(reinterpret_cast<const char*>(chunk) + chunk->size_bytes);
  for (; last_word < end; last_word += sizeof(wire::Record) / sizeof *last_word) {
    if (base::load(last_word) == 0) return false;
  }
  return true;
}

// A retired chunk that the next one, of `size` bytes, may replace where it is mapped; null: none. A
// call that has read the bounds of the one and takes its place in the other finds the same bounds.
wire::ChunkHeader** replaceable(ThreadLog& log, uint64_t size) {
  for (uint32_t i = 0; i < log.retired_count; ++i) {
    if (log.retired[i]->size_bytes == size && is_whole(log.retired[i])) return &log.retired[i];
  }
  return nullptr;
}

// Takes the next chunk without unmapping one that an interrupted call may store into, or whose
// address such a call has read as its bounds: outside of signal handlers there is no such call,
// within them full chunks stay mapped.
wire::ChunkHeader* take_events_chunk(ThreadLog& log, uint64_t size, Refusal* refusal) {
  const auto take = [&](void** over) {
    return process().take_chunk(wire::Kind::kEvents, Use::records, size, sizeof(wire::Record),
                                refusal, over);
  };
  if (log.chunk == nullptr || log.chunk->size_bytes < kFewBytes) return take(nullptr);
  if (!base::may_be_in_handler()) {
    free_retired(log);
    return take(nullptr);
  }
  wire::ChunkHeader** const old = replaceable(log, size);
  if (old == nullptr) {
    if (log.retired_count < kMostRetired) return take(nullptr);
    *refusal = Refusal::passing;
    return nullptr;
  }
  void* over = *old;
  wire::ChunkHeader* const chunk = take(&over);
  if (over == nullptr) *old = log.retired[--log.retired_count];
  return chunk;
}

// Parked logs live in pages of their own: the thread's storage goes with the thread.
void park(void*) {
  ThreadLog& log = thread_log;
  if (log.generation != base::load(&generation) || base::sealed()) return;
  base::SignalsBlocked blocked;
  log.registered = false;
  free_retired(log);
  if (log.chunk != nullptr || log.counter_chunk != nullptr) {
    const long page =
        base::map(wire::kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (!base::failed(page)) {
      auto* copy = reinterpret_cast<ThreadLog*>(page);
      *copy = log;
      for (ThreadLog*& place : parked) {
        ThreadLog* empty = nullptr;
        if (base::compare_exchange(&place, &empty, copy)) {
          log = {};
          return;
        }
      }
      base::unmap(copy, wire::kPageBytes);
    }
    if (log.chunk != nullptr) process().give_back(log.chunk);
    if (log.counter_chunk != nullptr) forget_index(log.index);
  }
  log = {};
}

bool adopt_parked(ThreadLog& log) {
  for (ThreadLog*& place : parked) {
    if (base::load_relaxed(&place) == nullptr) continue;
    ThreadLog* found = base::exchange(&place, static_cast<ThreadLog*>(nullptr));
    if (found == nullptr) continue;
    replace(log, *found);
    base::unmap(found, wire::kPageBytes);
    return true;
  }
  return false;
}

void register_thread(ThreadLog& log) {
  if (log.registered || !ends_known) return;
  log.registered = true;
  pthread_setspecific(end_of_thread, &log);
}

// The first thing a thread does here, and again after its log was parked or forgotten.
void begin_log(ThreadLog& log) {
  const bool adopted = adopt_parked(log);
  log.generation = base::load(&generation);
  register_thread(log);
  if (!adopted) return;
  const uint64_t now = base::ticks();
  Call marker{wire::Op::kThread,
              wire::Layer::marker,
              0,
              0,
              0,
              now,
              now,
              wire::kUnknownOffset,
              static_cast<uint64_t>(base::thread_id())};
  if (wire::Record* place = take_place(log)) write_record(place, marker);
}

Refusal next_events_chunk(ThreadLog& log) {
  uint64_t size = log.chunk == nullptr ? kFirstEventsBytes : log.chunk->size_bytes * 2;
  if (size > wire::kMaxChunkBytes) size = wire::kMaxChunkBytes;
  Refusal refusal = Refusal::none;
  wire::ChunkHeader* chunk = take_events_chunk(log, size, &refusal);
  if (chunk == nullptr) return refusal;
  const uint64_t series = log.chunk != nullptr ? log.chunk->log : reinterpret_cast<uint64_t>(chunk);
  chunk->log = series;
  chunk->sequence = log.sequence++;
  chunk->sum = wire::chunk_sum(*chunk);
  if (log.chunk != nullptr) retire_chunk(log);
  log.chunk = chunk;
  const uint64_t places = (size - sizeof *chunk) / sizeof(wire::Record);
  base::store(&chunk->used, places);  // all of them are this log's; those not yet written are zero
  log.next = log.begin = reinterpret_cast<uint64_t>(chunk + 1);
  log.bytes = places * sizeof(wire::Record);
  return Refusal::none;
}

}  // namespace

void record_otherwise(const Call& call) {
  ThreadLog& log = thread_log;
  if (log.counting) return count_call(call);
  if (base::sealed()) {
    wire::Record* place = log.generation == base::load(&generation) ? take_place(log) : nullptr;
    return place != nullptr ? write_record(place, call) : process().count_lost(1);
  }
  base::SignalsBlocked blocked;
  if (log.generation != base::load(&generation)) {
    replace(log, {});
    begin_log(log);
  }
  if (process().level() == wire::Level::kTrace) {
    // An adopted chunk may have room, and a handler may have brought a new one.
    wire::Record* place = take_place(log);
    if (place != nullptr) return write_record(place, call);
    if (log.patience != 0) {
      --log.patience;
      return count_call(call);
    }
    const Refusal refusal = next_events_chunk(log);
    if (refusal == Refusal::none) return write_record(take_place(log), call);
    if (refusal == Refusal::passing) {
      log.patience = kPatience;
      return count_call(call);
    }
    process().step_down(wire::Level::kDetail);
  }
  if (log.chunk != nullptr) retire_chunk(log);
  log.counting = true;
  count_call(call);
}

void forget_own_log() {
  ThreadLog& log = thread_log;
  const bool in_vfork_child = log.in_vfork_child;
  log = {};
  log.in_vfork_child = in_vfork_child;
}

void forget_logs() {
  base::fetch_add(&generation, 1u);
  for (ThreadLog*& place : parked) place = nullptr;
  forget_own_log();
}

void begin_logs() {
  // libc has room for a thread's first 32 keys with the thread; for others it would allocate,
  // perhaps in a signal handler.
  constexpr pthread_key_t kWithThread = 32;
  ends_known = pthread_key_create(&end_of_thread, park) == 0 && end_of_thread < kWithThread;
}

}  // namespace weir::trace
