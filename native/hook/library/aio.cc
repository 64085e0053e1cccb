// SPDX-License-Identifier: Apache-2.0
// libaio: its functions return what the kernel does, a negative errno on failure, and leave errno
// alone.
#include "hook/binding.h"
#include "hook/library/kernel_aio.h"

using namespace weir::hook;

namespace {

int failure_of(int result) { return result < 0 ? -result : 0; }

template <typename Real>
int collecting(const io_event* events, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = weir::base::ticks();
  const int result = calling_library(within_aio_library, real);
  collected(start, events, result, failure_of(result));
  return result;
}

}  // namespace

WEIR_OPTIONAL_HOOK(int, io_submit, void* context, long count, iocb** list) {
  WEIR_BOUND(io_submit);
  const auto real = WEIR_BOUND_REAL(io_submit);
  Submission submission(reinterpret_cast<uint64_t>(context), count, list);
  if (submission.is_refused()) return -EINVAL;
  const int result =
      calling_library(within_aio_library, [&] { return real(context, submission.count(), list); });
  submission.end(result, failure_of(result));
  return result;
}

WEIR_OPTIONAL_HOOK(int, io_getevents, void* context, long least, long most, io_event* events,
                   timespec* limit) {
  WEIR_BOUND(io_getevents);
  const auto real = WEIR_BOUND_REAL(io_getevents);
  return collecting(events, [=] { return real(context, least, most, events, limit); });
}

WEIR_OPTIONAL_HOOK(int, io_pgetevents, void* context, long least, long most, io_event* events,
                   timespec* limit, void* signals) {
  WEIR_BOUND(io_pgetevents);
  const auto real = WEIR_BOUND_REAL(io_pgetevents);
  return collecting(events, [=] { return real(context, least, most, events, limit, signals); });
}

#define WEIR_ENDS_CONTEXT(symbol)                                  \
  WEIR_OPTIONAL_HOOK(int, symbol, void* context) {                 \
    WEIR_BOUND(symbol);                                            \
    const auto real = WEIR_BOUND_REAL(symbol);                     \
    context_ends(reinterpret_cast<uint64_t>(context));             \
    return calling_library(within_aio_library, [=] { return real(context); });          \
  }
WEIR_ENDS_CONTEXT(io_destroy)
WEIR_ENDS_CONTEXT(io_queue_release)
