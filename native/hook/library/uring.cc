// SPDX-License-Identifier: Apache-2.0
// liburing: requests are read from the ring when one of its functions submits them, and are
// recorded with the bytes asked for. What becomes of them is not seen: programs collect completions
// by inline functions. A ring that was set up without these functions is left alone. The first
// fields of struct io_uring have stood where they are in all versions of the library.
#include "hook/library/uring.h"

#include <errno.h>
#include <limits.h>

#include "hook/binding.h"
#include "hook/observe.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/process.h"

namespace weir::hook {

WEIR_THREAD bool within_uring_library = false;

namespace {

struct Entry {  // struct io_uring_sqe
  uint8_t opcode, flags;
  uint16_t priority;
  int32_t fd;
  uint64_t offset, address;
  uint32_t length, op_flags;
  uint64_t user_data;
  uint16_t buffer, personality;
  uint32_t file_index;
  uint64_t rest[2];
};
static_assert(sizeof(Entry) == 64);

struct Ring {  // struct io_uring
  uint32_t *head, *tail, *mask, *entries, *flags, *dropped, *array;
  const Entry* requests;
  uint32_t first, last;  // not yet handed to the kernel
};

enum Opcode : uint8_t {
  kReadv = 1,
  kWritev = 2,
  kSync = 3,
  kReadFixed = 4,
  kWriteFixed = 5,
  kCloses = 19,
  kReads = 22,
  kWrites = 23
};
constexpr uint8_t kFixedFile = 1;                         // of an entry
constexpr uint32_t kDataOnly = 1;                         // of a sync
constexpr uint32_t kWideEntries = 1u << 10;               // of a ring: 128 bytes each
constexpr uint32_t kUnknownFlags = ~((1u << 18) - 1);  // rings of a form that later kernels brought

// A ring that a function of the library has set up.
struct Known {
  const Entry* requests;  // null: no ring
  uint32_t taken;
  uint32_t recorded;      // requests before this number are in the trace
  uint32_t entries, stride;
  uint32_t* files;        // registered ones, by the trace's names
  uint32_t file_count;
};
constexpr int kRings = 256;
constinit Known rings[kRings] = {};

Known* find(const Ring* ring) {
  for (Known& one : rings) {
    if (base::load(&one.requests) == ring->requests)
      return ring->requests != nullptr ? &one : nullptr;
  }
  return nullptr;
}

void forget_files(Known& ring) {
  if (ring.files != nullptr) base::unmap(ring.files, ring.file_count * sizeof *ring.files);
  ring.files = nullptr;
  ring.file_count = 0;
}

void forget(const Ring* ring) {
  Known* const known = find(ring);
  if (known == nullptr) return;
  forget_files(*known);
  base::store(&known->requests, static_cast<const Entry*>(nullptr));
  base::store(&known->taken, 0u);
}

void remember(const Ring* ring, uint32_t flags) {
  if ((flags & kUnknownFlags) != 0 || ring->requests == nullptr) return;
  forget(ring);
  for (Known& one : rings) {
    if (base::exchange(&one.taken, 1u) != 0) continue;
    one.recorded = ring->last;
    one.entries = *ring->entries;
    one.stride = (flags & kWideEntries) != 0 ? 2 : 1;
    base::store(&one.requests, ring->requests);
    return;
  }
}

// The files of a ring at [from, from + count). Null: none, as io_uring_register_files_sparse has
// it. -2 leaves a place as it is.
void register_files(Known& ring, uint32_t from, const int* files, uint32_t count) {
  if (from > ring.file_count || count > ring.file_count - from) return;
  for (uint32_t i = 0; i < count; ++i) {
    const int fd = files != nullptr ? files[i] : -1;
    if (fd >= -1) ring.files[from + i] = fd >= 0 ? file_of(fd) : 0;
  }
}

void register_all_files(const Ring* ring, const int* files, uint32_t count) {
  Known* const known = find(ring);
  if (known == nullptr) return;
  forget_files(*known);
  if (count == 0) return;
  const long memory =
      base::map(count * sizeof *known->files, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(memory)) return;
  known->files = reinterpret_cast<uint32_t*>(memory);
  known->file_count = count;
  register_files(*known, 0, files, count);
}

void replace_files(const Ring* ring, uint32_t from, const int* files, uint32_t count) {
  if (Known* const known = find(ring); known != nullptr) register_files(*known, from, files, count);
}

uint32_t file_of_entry(const Known& ring, const Entry& entry) {
  if ((entry.flags & kFixedFile) == 0) return file_of(entry.fd);
  const auto index = static_cast<uint32_t>(entry.fd);
  return index < ring.file_count ? ring.files[index] : 0;
}

uint64_t asked_by(const Entry& entry) {
  if (entry.opcode != kReadv && entry.opcode != kWritev) return entry.length;
  const auto* const vector = reinterpret_cast<const iovec*>(entry.address);
  if (entry.length == 0 || entry.length > IOV_MAX ||
      !stack::readable(vector, entry.length * sizeof *vector))
    return 0;
  return clip(wanted_of(vector, static_cast<int>(entry.length), 0));
}

void record_entry(const Known& ring, const Entry& entry, uint64_t now) {
  Op op = Op::kNone;
  switch (entry.opcode) {
    case kReadv: case kReadFixed: case kReads: op = Op::kAsyncRead; break;
    case kWritev: case kWriteFixed: case kWrites: op = Op::kAsyncWrite; break;
    case kSync: op = (entry.op_flags & kDataOnly) != 0 ? Op::kFdatasync : Op::kFsync; break;
    case kCloses:
      if (entry.file_index == 0) closed(entry.fd);
      return;
    default: return;
  }
  Call call{op,  Layer::posix, wire::kNested,  0, file_of_entry(ring, entry),
            now, now,          kUnknownOffset, 0};
  if (entry.opcode != kSync) {
    call.size = asked_by(entry);
    if (entry.offset < kUnknownOffset) call.offset = entry.offset;
    else if ((entry.flags & kFixedFile) == 0 && descriptor(entry.fd) != nullptr)
      descriptor(entry.fd)->position = kUnknownOffset;
  }
  record_call(call);
}

// What was prepared since the last look; one thread at a time submits to a ring.
void record_prepared(const Ring* ring, uint64_t now) {
  Known* const known = find(ring);
  if (known == nullptr) return;
  uint32_t at = known->recorded;
  const uint32_t last = ring->last;
  if (last - at > known->entries) at = last - known->entries;
  for (; at != last; ++at)
    record_entry(*known, ring->requests[(at & (known->entries - 1)) * known->stride], now);
  known->recorded = last;
}

// The library returns a negative errno.
void record_result(Op op, Span span, int result) {
  Call call{op, Layer::posix, 0, 0, 0, span.start, span.end, kUnknownOffset, 0};
  if (result < 0) {
    call.flags |= wire::kError;
    call.error = static_cast<uint8_t>(result > -255 ? -result : 255);
  }
  record_call(call);
}

// The kernel's requests pass no layer.
template <typename Real>
int setting_up(Real real) {
  const bool allowed = stack::leave_for_ring();
  const uint64_t start = base::ticks();
  const int result = allowed ? calling_library(within_uring_library, real) : -EPERM;
  if (WEIR_UNLIKELY(!recording())) return result;
  record_result(Op::kIoUringSetup, {start, base::ticks()}, result);
  return result;
}

template <typename Real>
int entering(const Ring* ring, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  record_prepared(ring, start);
  const int result = real();
  record_result(Op::kIoUringEnter, {start, base::ticks()}, result);
  return result;
}

constexpr int kFlagsOfParameters = 2;  // of struct io_uring_params, in words

}  // namespace
}  // namespace weir::hook

using namespace weir::hook;

WEIR_OPTIONAL_HOOK(int, io_uring_setup, unsigned entries, uint32_t* parameters) {
  WEIR_BOUND(io_uring_setup);
  const auto real = WEIR_BOUND_REAL(io_uring_setup);
  return setting_up([=] { return real(entries, parameters); });
}

WEIR_OPTIONAL_HOOK(int, io_uring_queue_init, unsigned entries, Ring* ring, unsigned flags) {
  WEIR_BOUND(io_uring_queue_init);
  const auto real = WEIR_BOUND_REAL(io_uring_queue_init);
  const int result = setting_up([=] { return real(entries, ring, flags); });
  if (result >= 0) remember(ring, flags);
  return result;
}

#define WEIR_URING_INIT(symbol, parameters_, ...)                                             \
  WEIR_OPTIONAL_HOOK(int, symbol, WEIR_LIST parameters_) {                                    \
    WEIR_BOUND(symbol);                                                                       \
    const auto real = WEIR_BOUND_REAL(symbol);                                                \
    const int result = setting_up([=] { return real(__VA_ARGS__); });                         \
    if (result >= 0) remember(ring, parameters[kFlagsOfParameters]);                          \
    return result;                                                                            \
  }
WEIR_URING_INIT(io_uring_queue_init_params, (unsigned entries, Ring* ring, uint32_t* parameters),
                entries, ring, parameters)
WEIR_URING_INIT(io_uring_queue_init_try_nosqarr,
                (unsigned entries, Ring* ring, uint32_t* parameters), entries, ring, parameters)
WEIR_URING_INIT(io_uring_queue_init_mem,
                (unsigned entries, Ring* ring, uint32_t* parameters, void* memory, size_t bytes),
                entries, ring, parameters, memory, bytes)

WEIR_OPTIONAL_HOOK(int, io_uring_queue_mmap, int fd, uint32_t* parameters, Ring* ring) {
  WEIR_BOUND(io_uring_queue_mmap);
  const auto real = WEIR_BOUND_REAL(io_uring_queue_mmap);
  weir::stack::leave_for_ring();
  const int result = real(fd, parameters, ring);
  if (result >= 0) remember(ring, parameters[kFlagsOfParameters]);
  return result;
}

WEIR_OPTIONAL_HOOK(void, io_uring_queue_exit, Ring* ring) {
  WEIR_BOUND(io_uring_queue_exit);
  const auto real = WEIR_BOUND_REAL(io_uring_queue_exit);
  forget(ring);
  real(ring);
}

// Registered files: all of a ring, or some of them from a place on.
#define WEIR_URING_FILES(symbol, parameters, files, count, ...)                  \
  WEIR_OPTIONAL_HOOK(int, symbol, WEIR_LIST parameters) {                        \
    WEIR_BOUND(symbol);                                                          \
    const auto real = WEIR_BOUND_REAL(symbol);                                   \
    const int result = real(__VA_ARGS__);                                        \
    if (result >= 0 && recording()) register_all_files(ring, files, count);      \
    return result;                                                               \
  }
WEIR_URING_FILES(io_uring_register_files, (Ring * ring, const int* files, unsigned count), files,
                 count, ring, files, count)
WEIR_URING_FILES(io_uring_register_files_tags,
                 (Ring * ring, const int* files, const uint64_t* tags, unsigned count), files,
                 count, ring, files, tags, count)
WEIR_URING_FILES(io_uring_register_files_sparse, (Ring * ring, unsigned count), nullptr, count,
                 ring, count)
WEIR_URING_FILES(io_uring_unregister_files, (Ring* ring), nullptr, 0, ring)

#define WEIR_URING_FILES_UPDATE(symbol, parameters, ...)               \
  WEIR_OPTIONAL_HOOK(int, symbol, WEIR_LIST parameters) {              \
    WEIR_BOUND(symbol);                                                \
    const auto real = WEIR_BOUND_REAL(symbol);                         \
    const int result = real(__VA_ARGS__);                              \
    if (result > 0 && recording())                                     \
      replace_files(ring, from, files, static_cast<uint32_t>(result)); \
    return result;                                                     \
  }
WEIR_URING_FILES_UPDATE(io_uring_register_files_update,
                        (Ring * ring, unsigned from, const int* files, unsigned count), ring, from,
                        files, count)
WEIR_URING_FILES_UPDATE(io_uring_register_files_update_tag,
                        (Ring * ring, unsigned from, const int* files, const uint64_t* tags,
                         unsigned count),
                        ring, from, files, tags, count)

#define WEIR_URING_ENTERS(symbol, parameters, ...)                               \
  WEIR_OPTIONAL_HOOK(int, symbol, WEIR_LIST parameters) {                        \
    WEIR_BOUND(symbol);                                                          \
    const auto real = WEIR_BOUND_REAL(symbol);                                   \
    return entering(ring, [=] { return real(__VA_ARGS__); });                    \
  }
WEIR_URING_ENTERS(io_uring_submit, (Ring* ring), ring)
WEIR_URING_ENTERS(io_uring_submit_and_wait, (Ring* ring, unsigned wait), ring, wait)
WEIR_URING_ENTERS(io_uring_submit_and_get_events, (Ring* ring), ring)
WEIR_URING_ENTERS(io_uring_submit_and_wait_timeout,
                  (Ring * ring, void** done, unsigned wait, void* limit, void* signals), ring, done,
                  wait, limit, signals)
WEIR_URING_ENTERS(io_uring_submit_and_wait_min_timeout,
                  (Ring * ring, void** done, unsigned wait, void* limit, unsigned least,
                   void* signals),
                  ring, done, wait, limit, least, signals)
WEIR_URING_ENTERS(io_uring_submit_and_wait_reg,
                  (Ring * ring, void** done, unsigned wait, int index), ring, done, wait, index)
WEIR_URING_ENTERS(io_uring_wait_cqes,
                  (Ring * ring, void** done, unsigned wait, void* limit, void* signals), ring, done,
                  wait, limit, signals)
WEIR_URING_ENTERS(io_uring_wait_cqe_timeout, (Ring * ring, void** done, void* limit), ring, done,
                  limit)
WEIR_URING_ENTERS(__io_uring_get_cqe,
                  (Ring * ring, void** done, unsigned submit, unsigned wait, void* signals), ring,
                  done, submit, wait, signals)
