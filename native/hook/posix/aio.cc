// SPDX-License-Identifier: Apache-2.0
// Asynchronous I/O of POSIX (aio.h). The bytes of a request are recorded when it is handed in, as
// asked for: the threads of the C library that move them pass no hook. aio_return and aio_suspend
// are calls that move nothing.
#include <aio.h>

#include "hook/observe.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;
namespace wire = weir::wire;

namespace {

// What a control block asks for; read before the call, after which its owner may free it at any
// moment.
struct Request {
  int fd;
  uint64_t size;
  int64_t offset;
};

Request request_of(const aiocb* block) {
  return {block->aio_fildes, clip(block->aio_nbytes), block->aio_offset};
}

Call call_of(Op op, const Request& request, uint64_t start, uint64_t end) {
  const uint64_t offset =
      request.offset >= 0 ? static_cast<uint64_t>(request.offset) : kUnknownOffset;
  Call call{op, Layer::posix, 0, 0, file_of(request.fd), start, end, offset, request.size};
  below_fortran(call, descriptor(request.fd));
  return call;
}

// The C library's threads move the bytes: they are to find them with the kernel. False: a layer
// transforms them, so that the call fails with EINVAL.
bool leave_layers(const aiocb* block) {
  if (block == nullptr || !stack::active() ||
      stack::leave(block->aio_fildes, stack::Reason::kUnsupported))
    return true;
  errno = EINVAL;
  return false;
}

template <typename Real>
int submitting(Op op, const aiocb* block, Real real) {
  if (!leave_layers(block)) return -1;
  if (WEIR_UNLIKELY(!recording()) || block == nullptr) return real();
  const Request request = request_of(block);
  const uint64_t start = base::ticks();
  const int result = real();
  Call call = call_of(op, request, start, base::ticks());
  set_outcome(call, result < 0);
  record_call(call);
  return result;
}

// One request of a list. done: it has been waited for, so its block tells what came of it.
void record_entry(const aiocb* block, bool done, uint64_t start, uint64_t end) {
  if (block == nullptr || (block->aio_lio_opcode != LIO_READ && block->aio_lio_opcode != LIO_WRITE))
    return;
  Call call = call_of(block->aio_lio_opcode == LIO_READ ? Op::kLioRead : Op::kLioWrite,
                      request_of(block), start, end);
  call.flags |= wire::kBelow | wire::kNested;
  if (done && block->__error_code != 0) {
    call.flags |= wire::kError;
    call.error = static_cast<uint8_t>(block->__error_code);
  } else if (done && block->__return_value >= 0) {
    if (static_cast<uint64_t>(block->__return_value) < call.size) call.flags |= wire::kShort;
    call.size = static_cast<uint64_t>(block->__return_value);
  }
  record_call(call);
}

// A null block is glibc's to refuse.
template <typename Real>
auto on_block(Op op, const aiocb* block, Real real) {
  if (block == nullptr) return real();
  if (op == Op::kAioFsync && stack::active())
    stack::leave(block->aio_fildes, stack::Reason::kUnsupported);
  return on_descriptor(op, block->aio_fildes, kUnknownOffset, 0, real);
}

// The call itself is one record; each request in its list is one below it, which carries the bytes.
template <typename Real>
int submitting_list(int mode, const aiocb* const* list, int count, Real real) {
  for (int i = 0; stack::active() && (mode == LIO_WAIT || mode == LIO_NOWAIT) && i < count; ++i) {
    if (list[i] != nullptr && list[i]->aio_lio_opcode != LIO_NOP && !leave_layers(list[i]))
      return -1;
  }
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  if (mode == LIO_NOWAIT) {
    for (int i = 0; i < count; ++i) record_entry(list[i], false, start, start);
  }
  const int result = real();
  const uint64_t end = base::ticks();
  Call call{Op::kLioListio, Layer::posix, 0, 0, 0, start, end, kUnknownOffset, 0};
  set_outcome(call, result < 0);
  // EIO: all were tried, and each block says how it fared.
  if (mode == LIO_WAIT && (result == 0 || call.error == EIO)) {
    for (int i = 0; i < count; ++i) record_entry(list[i], true, start, end);
  }
  record_call(call);
  return result;
}

}  // namespace

#define WEIR_AIO(symbol, op)                                                                \
  WEIR_HOOK(int, symbol, aiocb* block) {                                                    \
    return submitting(Op::op, block, [=] { return WEIR_REAL(symbol)(block); });             \
  }
WEIR_AIO(aio_read, kAioRead)
WEIR_AIO(aio_read64, kAioRead)
WEIR_AIO(aio_write, kAioWrite)
WEIR_AIO(aio_write64, kAioWrite)

#define WEIR_AIO_FSYNC(symbol)                                                                  \
  WEIR_HOOK(int, symbol, int kind, aiocb* block) {                                              \
    return on_block(Op::kAioFsync, block, [=] { return WEIR_REAL(symbol)(kind, block); });      \
  }
WEIR_AIO_FSYNC(aio_fsync)
WEIR_AIO_FSYNC(aio_fsync64)

#define WEIR_AIO_RETURN(symbol)                                                                 \
  WEIR_HOOK(ssize_t, symbol, aiocb* block) {                                                    \
    return on_block(Op::kAioReturn, block, [=] { return WEIR_REAL(symbol)(block); });           \
  }
WEIR_AIO_RETURN(aio_return)
WEIR_AIO_RETURN(aio_return64)

#define WEIR_AIO_SUSPEND(symbol)                                                       \
  WEIR_HOOK(int, symbol, const aiocb* const* list, int count, const timespec* limit) { \
    return on_descriptor(Op::kAioSuspend, -1, kUnknownOffset, 0,                       \
                         [=] { return WEIR_REAL(symbol)(list, count, limit); });       \
  }
WEIR_AIO_SUSPEND(aio_suspend)
WEIR_AIO_SUSPEND(aio_suspend64)

#define WEIR_LIO(symbol)                                                                 \
  WEIR_HOOK(int, symbol, int mode, aiocb* const* list, int count, sigevent* event) {     \
    return submitting_list(mode, list, count,                                            \
                           [=] { return WEIR_REAL(symbol)(mode, list, count, event); }); \
  }
WEIR_LIO(lio_listio)
WEIR_LIO(lio_listio64)
