// SPDX-License-Identifier: Apache-2.0
// Requests under way stand in a table without locks, by the address of their control block. A
// request that finds no room is recorded when it is submitted. One whose completion no hook sees (a
// program may read the ring of completions itself) is recorded when its block is submitted again,
// when the context is destroyed, or at the end of the process: with the bytes asked for, and no
// duration.
#include "hook/library/kernel_aio.h"

#include <limits.h>

#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/table.h"

namespace weir::hook {

WEIR_THREAD bool within_aio_library = false;

namespace {

struct Request {
  uint64_t context, start, offset, size;
  uint32_t file;
  Op op;
  uint8_t flags;
};

constexpr uint32_t kRequests = 4096, kReach = 32;  // a block stands within kReach places of its own
constexpr uint64_t kFree = 0, kBusy = 1;           // no addresses of blocks
constexpr long kMostBlocks = 1 << 20;              // of a list: more than a context has room for
constinit uint64_t blocks[kRequests + kReach] = {};
constinit Request requests[kRequests + kReach] = {};
constinit uint32_t any_requests = 0;

constexpr uint64_t address_of(const iocb* block) { return reinterpret_cast<uint64_t>(block); }

uint32_t home_of(uint64_t block) {
  return static_cast<uint32_t>(block >> 6 ^ block >> 18) % kRequests;
}

// The operation of a block; kNone: one that moves and writes nothing (a poll).
Op op_of(const iocb& block) {
  switch (block.aio_lio_opcode) {
    case IOCB_CMD_PREAD:
    case IOCB_CMD_PREADV: return Op::kAsyncRead;
    case IOCB_CMD_PWRITE:
    case IOCB_CMD_PWRITEV: return Op::kAsyncWrite;
    case IOCB_CMD_FSYNC: return Op::kFsync;
    case IOCB_CMD_FDSYNC: return Op::kFdatasync;
    default: return Op::kNone;
  }
}

uint64_t asked_by(const iocb& block) {
  const bool is_vector =
      block.aio_lio_opcode == IOCB_CMD_PREADV || block.aio_lio_opcode == IOCB_CMD_PWRITEV;
  if (!is_vector) return clip(block.aio_nbytes);
  const auto* const vector = reinterpret_cast<const iovec*>(block.aio_buf);
  const uint64_t count = block.aio_nbytes;
  if (count == 0 || count > IOV_MAX || !stack::readable(vector, count * sizeof *vector)) return 0;
  return clip(wanted_of(vector, static_cast<int>(count), 0));
}

Request request_of(uint64_t context, const iocb& block, uint64_t now) {
  const Op op = op_of(block);
  const bool moves = op == Op::kAsyncRead || op == Op::kAsyncWrite;
  const int fd = static_cast<int>(block.aio_fildes);
  const uint64_t offset =
      moves && block.aio_offset >= 0 ? static_cast<uint64_t>(block.aio_offset) : kUnknownOffset;
  return {context, now, offset, moves ? asked_by(block) : 0, file_of(fd), op, wire::kNested};
}

// Its time is no time of the program's: that is in the calls which submit and collect.
void record_request(const Request& request, uint64_t end, int64_t result) {
  Call call{request.op,    Layer::posix, request.flags,  0,           request.file,
            request.start, end,          request.offset, request.size};
  if (result < 0) {
    call.flags |= wire::kError;
    call.error = static_cast<uint8_t>(result > -255 ? -result : 255);
  } else if (request.op == Op::kAsyncRead || request.op == Op::kAsyncWrite) {
    const auto moved = static_cast<uint64_t>(result);
    if (moved < call.size) call.flags |= wire::kShort;
    call.size = clip(moved);
  }
  record_call(call);
}

void record_unseen(const Request& request) {
  record_request(request, request.start, static_cast<int64_t>(request.size));
}

// Takes what stands at a place, when it still is the block's.
bool take(uint32_t place, uint64_t block, Request& to) {
  uint64_t expected = block;
  if (!base::compare_exchange(&blocks[place], &expected, kBusy)) return false;
  to = requests[place];
  base::store(&blocks[place], kFree);
  return true;
}

bool take_block(uint64_t block, Request& to) {
  const uint32_t home = home_of(block);
  for (uint32_t place = home; place < home + kReach; ++place) {
    if (base::load(&blocks[place]) == block && take(place, block, to)) return true;
  }
  return false;
}

void put(uint64_t block, const Request& request) {
  base::store(&any_requests, 1u);
  const uint32_t home = home_of(block);
  for (uint32_t place = home; place < home + kReach; ++place) {
    uint64_t expected = kFree;
    if (base::load_relaxed(&blocks[place]) != kFree ||
        !base::compare_exchange(&blocks[place], &expected, kBusy))
      continue;
    requests[place] = request;
    base::store(&blocks[place], block);
    return;
  }
  record_unseen(request);
}

template <typename Which>
void take_all(Which which) {
  if (base::load(&any_requests) == 0) return;
  for (uint32_t place = 0; place < kRequests + kReach; ++place) {
    const uint64_t block = base::load(&blocks[place]);
    Request request;
    if (block > kBusy && which(requests[place]) && take(place, block, request) && recording())
      record_unseen(request);
  }
}

// The call that submits or collects; file: of all its requests, or 0. failure: a positive errno, or
// 0.
void record_aio_call(Op op, uint32_t file, Span span, int failure) {
  Call call{op, Layer::posix, 0, 0, file, span.start, span.end, kUnknownOffset, 0};
  if (failure != 0) {
    call.flags |= wire::kError;
    call.error = static_cast<uint8_t>(failure < 255 ? failure : 255);
  }
  record_call(call);
}

bool is_readable(const iocb* block) {
  return block != nullptr && stack::readable(block, sizeof *block);
}

}  // namespace

Submission::Submission(uint64_t context, long count, iocb* const* list)
    : list_(list), asked_(count), allowed_(count) {
  const bool is_recorded = recording();
  if (!is_recorded && !stack::active()) return;
  start_ = base::ticks();
  recorded_ = is_recorded;
  if (count <= 0 || count > kMostBlocks || list == nullptr ||
      !stack::readable(list, static_cast<uint64_t>(count) * sizeof *list)) {
    list_ = nullptr;
    return;
  }
  for (long i = 0; i < count && is_readable(list[i]); ++i) {
    if (op_of(*list[i]) == Op::kNone) continue;
    if (stack::active() &&
        !stack::leave(static_cast<int>(list[i]->aio_fildes), stack::Reason::kUnsupported)) {
      allowed_ = i;
      return;
    }
    if (!is_recorded) continue;
    Request before;
    if (take_block(address_of(list[i]), before)) record_unseen(before);
    const Request request = request_of(context, *list[i], start_);
    put(address_of(list[i]), request);
    file_ = i == 0 || file_ == request.file ? request.file : 0;
  }
}

void Submission::end(long accepted, int failure) {
  if (!recorded_) return;
  for (long i = accepted > 0 ? accepted : 0;
       list_ != nullptr && i < allowed_ && is_readable(list_[i]); ++i) {
    Request refused;
    take_block(address_of(list_[i]), refused);
  }
  record_aio_call(Op::kIoSubmit, file_, {start_, base::ticks()}, failure);
}

void collected(uint64_t start, const io_event* events, long count, int failure) {
  if (!recording()) return;
  const uint64_t end = base::ticks();
  uint32_t file = 0;
  for (long i = 0; i < count; ++i) {
    Request request{};
    if (take_block(events[i].obj, request)) record_request(request, end, events[i].res);
    file = i == 0 || file == request.file ? request.file : 0;
  }
  record_aio_call(Op::kIoGetevents, file, {start, end}, failure);
}

void context_ends(uint64_t context) {
  take_all([context](const Request& request) { return request.context == context; });
}

void process_ends_with_requests() {
  take_all([](const Request&) { return true; });
}

void forget_requests() {
  if (base::load(&any_requests) == 0) return;
  for (uint64_t& block : blocks) base::store(&block, kFree);
  base::store(&any_requests, 0u);
}

}  // namespace weir::hook
