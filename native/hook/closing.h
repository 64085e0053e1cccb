// SPDX-License-Identifier: Apache-2.0
// Numbers of descriptors given up and copied, by whichever call.
#pragma once

#include "hook/observe.h"
#include "base/syscall.h"
#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/private.h"
#include "layers/machinery/stack/table.h"

namespace weir::hook {

// Whether a number may be weir's for the moment: one that no hook saw being opened, and any while
// weir has a file open, as it may have been closed by a call that nobody saw. In a vfork child the
// table is another.
inline bool may_be_weirs(int fd) {
  if (trace::thread_log.in_vfork_child) return false;
  const Descriptor* d = descriptor(fd);
  return d == nullptr || base::load_relaxed(&d->file) == 0 || base::any_held();
}

// weir's own are not open for the program.
template <typename Real>
auto closing_layered(int fd, Real real) -> decltype(real()) {
  if (stack::is_private(fd) && !trace::thread_log.in_vfork_child) {
    errno = EBADF;
    return -1;
  }
  return stack::closing(fd, real);
}

// The descriptor's entry is dropped before the kernel can hand out its number again.
template <typename Real>
auto closing(int fd, Real unlayered) {
  const auto real = [&] { return closing_layered(fd, unlayered); };
  if (WEIR_UNLIKELY(!recording())) return real();
  Call call{Op::kClose, Layer::posix, 0, 0, 0, 0, 0, kUnknownOffset, 0};
  const auto without_weirs = [&] {
    const base::ClosesNumbers closes(may_be_weirs(fd));
    call.file = file_of(fd);
    below_fortran(call, descriptor(fd));
    closed(fd);
    call.start = base::ticks();
    return real();
  };
  const auto result = without_weirs();
  call.end = base::ticks();
  set_outcome(call, result < 0);
  record_call(call);
  return result;
}

// real(first, last) closes a range; weir's own descriptors are left out.
template <typename Real>
int closing_but_private(unsigned first, unsigned last, Real real) {
  if (trace::thread_log.in_vfork_child) return real(first, last);
  for (int own = stack::next_private(first); own >= 0 && static_cast<unsigned>(own) <= last;
       own = stack::next_private(first)) {
    const auto number = static_cast<unsigned>(own);
    if (number > first) {
      if (const int result = real(first, number - 1); result != 0) return result;
    }
    if (number == last) return 0;
    first = number + 1;
  }
  return real(first, last);
}

template <typename Real>
int closing_range(unsigned first, unsigned last, bool closes, Real piece) {
  const auto real = [&] {
    if (!closes) return piece(first, last);
    stack::before_close_range(first, last);
    return closing_but_private(first, last, piece);
  };
  if (WEIR_UNLIKELY(!recording())) return real();
  const auto result = on_descriptor(Op::kCloseRange, -1, kUnknownOffset, 0, [&] {
    const base::ClosesNumbers may_close(closes && !trace::thread_log.in_vfork_child);
    return real();
  });
  if (result == 0 && closes) closed_range(first, last);
  return result;
}

// The kernel refuses a number that another thread's open has reserved. That open may be weir's,
// which the program does not know of: the call is repeated, kBusyTries times at most.
template <typename Real>
auto copying_when_free(Real real) -> decltype(real()) {
  constexpr int kBusyTries = 20000;
  auto result = real();
  for (int i = 0; i < kBusyTries && result < 0 && errno == EBUSY; ++i) {
    base::yield();
    result = real();
  }
  return result;
}

// to: the number asked for, -1: any.
template <typename Real>
auto copying(Op op, int fd, int to, Real unlayered) {
  const auto real = [&] {
    if (to >= 0 && !stack::may_copy(fd, to)) {
      errno = EBUSY;
      return decltype(unlayered())(-1);
    }
    if (to >= 0) stack::before_replacing(fd, to);
    const auto result = copying_when_free(unlayered);
    if (result >= 0 && result <= 2 && to < 0) {
      const bool was_memory = stack::is_in_memory(stack::file_at(fd));
      if (!stack::may_copy(fd, static_cast<int>(result))) {
        base::close_fd(static_cast<int>(result));
        errno = EMFILE;
        return decltype(unlayered())(-1);
      }
      // The copy is of the memory that the file no longer has.
      if (was_memory) stack::copy_again(fd, static_cast<int>(result));
    }
    if (result >= 0) stack::copied(fd, static_cast<int>(result));
    return result;
  };
  if (WEIR_UNLIKELY(!recording())) return real();
  const auto result = on_descriptor(op, fd, kUnknownOffset, 0, [&] {
    const base::ClosesNumbers closes(to >= 0 && may_be_weirs(to));
    return real();
  });
  if (result >= 0) copied(fd, static_cast<int>(result));
  return result;
}

inline constexpr unsigned kOnlyCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC

}  // namespace weir::hook
