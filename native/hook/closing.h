// SPDX-License-Identifier: Apache-2.0
// Numbers of descriptors given up and copied, by whichever call.
#pragma once

#include "hook/observe.h"
#include "os/syscall.h"

namespace weir::hook {

// Before a number is closed that may be weir's for the moment.
inline void leave_weirs_alone() {
  if (WEIR_UNLIKELY(os::any_held())) os::wait_for_held();
}

// The descriptor's entry is dropped before the kernel can hand out its number again.
template <typename Real>
auto closing(int fd, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  leave_weirs_alone();
  Descriptor* d = descriptor(fd);
  Call call{Op::kClose, Layer::posix, 0, 0, file_of(fd), 0, 0, kUnknownOffset, 0};
  below_fortran(call, d);
  closed(fd);
  call.start = os::ticks();
  const auto result = real();
  call.end = os::ticks();
  set_outcome(call, result < 0);
  keep(call);
  return result;
}

template <typename Real>
auto closing_range(unsigned first, unsigned last, bool closes, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  leave_weirs_alone();
  const auto result = on_descriptor(Op::kCloseRange, -1, kUnknownOffset, 0, real);
  if (result == 0 && closes) closed_range(first, last);
  return result;
}

template <typename Real>
auto copying(Op op, int fd, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  leave_weirs_alone();
  const auto result = on_descriptor(op, fd, kUnknownOffset, 0, real);
  if (result >= 0) copied(fd, static_cast<int>(result));
  return result;
}

inline constexpr unsigned kOnlyCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC

}  // namespace weir::hook
