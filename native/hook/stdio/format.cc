// SPDX-License-Identifier: Apache-2.0
// Formatted text in and out of streams and descriptors: the printf and scanf families. Each form
// with `...` calls the real one that takes a list; both are one call of the application.
#include <stdarg.h>
#include <sys/mman.h>

#include "hook/stdio/stream.h"
#include "base/syscall.h"
#include "layers/machinery/stack/cancel.h"
#include "layers/machinery/stack/posix.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;
namespace wire = weir::wire;

namespace {

int write_all(stack::File* file, int fd, const char* text, size_t n) {
  for (size_t done = 0; done < n;) {
    const ssize_t written = stack::write(file, fd, text + done, n - done);
    if (written <= 0) return -1;
    done += static_cast<size_t>(written);
  }
  return static_cast<int>(n);
}

template <typename Real>
inline int printing(FILE* f, Real real) {
  return on_stream(Op::kFprintf, f, real, [](Call& call, int result) {
    if (WEIR_LIKELY(result >= 0)) call.size = static_cast<uint64_t>(result);
    else set_outcome(call, true);
  });
}

template <typename Real>
inline int scanning(FILE* f, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const BufferWatch watch(f);
  return on_stream(Op::kFscanf, f, real, [&](Call& call, int result) {
    call.size = watch.taken(f);
    if (result == EOF && call.size == 0) nothing_read(call, f, 0);
  });
}

// glibc would write by a system call of its own. A text that does not fit into a page is made
// twice.
int print_into_layers(stack::File* file, int fd, const char* format, va_list more) {
  char page[4096];
  va_list again;
  va_copy(again, more);
  const int n = vsnprintf(page, sizeof page, format, more);
  if (n >= 0 && static_cast<size_t>(n) < sizeof page) {
    va_end(again);
    return write_all(file, fd, page, static_cast<size_t>(n));
  }
  const size_t bytes = static_cast<size_t>(n) + 1;
  const long room =
      n < 0 ? -ENOMEM : base::map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  int result = -1;
  if (!base::failed(room)) {
    char* const text = reinterpret_cast<char*>(room);
    vsnprintf(text, bytes, format, again);
    result = write_all(file, fd, text, bytes - 1);
    base::unmap(text, bytes);
  } else if (n >= 0) {
    errno = ENOMEM;
  }
  va_end(again);
  return result;
}

template <typename Real>
int print_to(int fd, const char* format, va_list more, Real real) {
  stack::File* const file = stack::file_at(fd);
  if (WEIR_LIKELY(file == nullptr)) return real();
  stack::cancellation_point();
  return print_into_layers(file, fd, format, more);
}

// Straight to a descriptor: the position is followed as that of write.
template <typename Real>
inline int printing_to(int fd, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  const int result = real();
  Call call{Op::kDprintf, Layer::stdio, 0, 0, file_of(fd), start, base::ticks(), kUnknownOffset, 0};
  set_outcome(call, result < 0);
  if (result >= 0) {
    call.size = static_cast<uint64_t>(result);
    call.offset = advance(descriptor(fd), call.size, true);
  }
  below_fortran(call, descriptor(fd));
  record_call(call);
  return result;
}

}  // namespace

#define ON(f) [&](auto real) { return printing(f, real); }
#define FROM(f) [&](auto real) { return scanning(f, real); }
#define PRINTED_TO(fd, ...) print_to(fd, format, more, [&] { return __VA_ARGS__; })
#define TO(fd) [&](auto real) { return printing_to(fd, real); }

WEIR_HOOK(int, vfprintf, FILE* f, const char* format, va_list more) {
  return printing(f, [&] { return WEIR_REAL(vfprintf)(f, format, more); });
}
WEIR_HOOK(int, __vfprintf_chk, FILE* f, int check, const char* format, va_list more) {
  return printing(f, [&] { return WEIR_REAL(__vfprintf_chk)(f, check, format, more); });
}
WEIR_HOOK(int, vprintf, const char* format, va_list more) {
  return printing(stdout, [&] { return WEIR_REAL(vprintf)(format, more); });
}
WEIR_HOOK(int, __vprintf_chk, int check, const char* format, va_list more) {
  return printing(stdout, [&] { return WEIR_REAL(__vprintf_chk)(check, format, more); });
}
WEIR_HOOK(int, vdprintf, int fd, const char* format, va_list more) {
  return printing_to(fd, [&] { return PRINTED_TO(fd, WEIR_REAL(vdprintf)(fd, format, more)); });
}
WEIR_HOOK(int, __vdprintf_chk, int fd, int check, const char* format, va_list more) {
  return printing_to(
      fd, [&] { return PRINTED_TO(fd, WEIR_REAL(__vdprintf_chk)(fd, check, format, more)); });
}
WEIR_VARIADIC(fprintf, WEIR_LIST(FILE* f, const char* format), ON(f),
              WEIR_REAL(vfprintf)(f, format, more))
WEIR_VARIADIC(__fprintf_chk, WEIR_LIST(FILE* f, int check, const char* format), ON(f),
              WEIR_REAL(__vfprintf_chk)(f, check, format, more))
WEIR_VARIADIC(printf, WEIR_LIST(const char* format), ON(stdout), WEIR_REAL(vprintf)(format, more))
WEIR_VARIADIC(__printf_chk, WEIR_LIST(int check, const char* format), ON(stdout),
              WEIR_REAL(__vprintf_chk)(check, format, more))
WEIR_VARIADIC(dprintf, WEIR_LIST(int fd, const char* format), TO(fd),
              PRINTED_TO(fd, WEIR_REAL(vdprintf)(fd, format, more)))
WEIR_VARIADIC(__dprintf_chk, WEIR_LIST(int fd, int check, const char* format), TO(fd),
              PRINTED_TO(fd, WEIR_REAL(__vdprintf_chk)(fd, check, format, more)))

// The standards' generations differ in what %a and 0b mean; each is a family of its own in glibc.
#define WEIR_SCANF(prefix)                                                           \
  WEIR_HOOK(int, prefix##vfscanf, FILE* f, const char* format, va_list more) {       \
    return scanning(f, [&] { return WEIR_REAL(prefix##vfscanf)(f, format, more); }); \
  }                                                                                  \
  WEIR_HOOK(int, prefix##vscanf, const char* format, va_list more) {                 \
    return scanning(stdin, [&] { return WEIR_REAL(prefix##vscanf)(format, more); }); \
  }                                                                                  \
  WEIR_VARIADIC(prefix##fscanf, WEIR_LIST(FILE* f, const char* format), FROM(f),     \
                WEIR_REAL(prefix##vfscanf)(f, format, more))                         \
  WEIR_VARIADIC(prefix##scanf, WEIR_LIST(const char* format), FROM(stdin),           \
                WEIR_REAL(prefix##vscanf)(format, more))
WEIR_SCANF()
WEIR_SCANF(__isoc99_)
WEIR_SCANF(__isoc23_)
