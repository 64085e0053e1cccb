// SPDX-License-Identifier: Apache-2.0
#include "record/log.h"

#include <pthread.h>
#include <string.h>

#include "os/clock.h"
#include "os/syscall.h"
#include "record/counter_index.h"

namespace weir::record {

WEIR_THREAD ThreadLog thread_log;

namespace {

constexpr uint64_t kFirstEventsBytes = 4096;
constexpr int kParked = 64;
constexpr uint32_t kPatience = 64;

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
  r->start = call.start;
  r->duration = static_cast<uint32_t>(duration);
  r->file = call.file;
  r->offset_and_size_high = (call.offset & wire::kUnknownOffset) | (call.size >> 32) << 48;
  base::store(reinterpret_cast<uint64_t*>(&r->size_low), (call.size & UINT32_MAX) | kind_of(call, flags));
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

// The log goes on without a chunk.
void retire_chunk(ThreadLog& log) {
  if (log.previous != nullptr) process().give_back(log.previous);
  log.previous = log.chunk;
  log.chunk = nullptr;
  log.bytes = 0;
}

// Parked logs live in pages of their own: the thread's storage goes with the thread.
void park(void*) {
  ThreadLog& log = thread_log;
  if (log.generation != base::load(&generation) || os::sealed()) return;
  os::SignalsBlocked blocked;
  log.registered = false;
  if (log.previous != nullptr) process().give_back(log.previous);
  log.previous = nullptr;
  if (log.chunk != nullptr || log.counter_chunk != nullptr) {
    const long page = os::map(wire::kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (!os::failed(page)) {
      auto* copy = reinterpret_cast<ThreadLog*>(page);
      *copy = log;
      for (ThreadLog*& place : parked) {
        ThreadLog* empty = nullptr;
        if (base::compare_exchange(&place, &empty, copy)) {
          log = {};
          return;
        }
      }
      os::unmap(copy, wire::kPageBytes);
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
    os::unmap(found, wire::kPageBytes);
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
  const uint64_t now = os::ticks();
  Call marker{wire::Op::kThread, wire::Layer::marker, 0, 0, 0, now, now, wire::kUnknownOffset, static_cast<uint64_t>(os::thread_id())};
  if (wire::Record* place = take_place(log)) write_record(place, marker);
}

Refusal next_events_chunk(ThreadLog& log) {
  uint64_t size = log.chunk == nullptr ? kFirstEventsBytes : log.chunk->size_bytes * 2;
  if (size > wire::kMaxChunkBytes) size = wire::kMaxChunkBytes;
  Refusal refusal = Refusal::none;
  wire::ChunkHeader* chunk = process().take_chunk(wire::Kind::kEvents, Use::records, size, sizeof(wire::Record), &refusal);
  if (chunk == nullptr) return refusal;
  const uint64_t series = log.chunk != nullptr ? log.chunk->log : reinterpret_cast<uint64_t>(chunk);
  chunk->log = series;
  chunk->sequence = log.sequence++;
  retire_chunk(log);
  log.chunk = chunk;
  const uint64_t places = (size - sizeof *chunk) / sizeof(wire::Record);
  base::store(&chunk->used, places);  // all of them are this log's; those not yet written are zero
  log.next = log.begin = reinterpret_cast<uint64_t>(chunk + 1);
  log.bytes = places * sizeof(wire::Record);
  return Refusal::none;
}

}  // namespace

void keep_otherwise(const Call& call) {
  ThreadLog& log = thread_log;
  if (log.counting) return keep_counted(call);
  if (os::sealed()) {
    wire::Record* place = log.generation == base::load(&generation) ? take_place(log) : nullptr;
    return place != nullptr ? write_record(place, call) : process().count_lost(1);
  }
  os::SignalsBlocked blocked;
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
      return keep_counted(call);
    }
    const Refusal refusal = next_events_chunk(log);
    if (refusal == Refusal::none) return write_record(take_place(log), call);
    if (refusal == Refusal::passing) {
      log.patience = kPatience;
      return keep_counted(call);
    }
    process().step_down(wire::Level::kDetail);
  }
  if (log.chunk != nullptr) retire_chunk(log);
  log.counting = true;
  keep_counted(call);
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
  if (pthread_key_create(&end_of_thread, park) == 0) ends_known = true;
}

}  // namespace weir::record
