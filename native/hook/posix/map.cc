// SPDX-License-Identifier: Apache-2.0
// Bytes that pass no buffer of the program: mapped files, and copies inside the kernel. A copy has
// a record on the file written, which is the call, and one on the file read, which carries its
// bytes alone.
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "base/syscall.h"
#include "hook/mappings.h"
#include "hook/observe.h"
#include "layers/machinery/stack/mapped.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/replace.h"
#include "layers/machinery/stack/reach.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;

namespace {

template <typename Real>
ssize_t copying_inside(Op op, Op op_in, int in, int64_t in_at, int out, int64_t out_at, size_t n,
                       Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  const ssize_t result = real();
  const Span span{start, base::ticks()};
  if (result >= 0) {
    Descriptor* d = descriptor(in);
    const uint64_t bytes = static_cast<uint64_t>(result);
    const uint64_t at = in_at >= 0 ? static_cast<uint64_t>(in_at) : advance(d, bytes, false);
    record_call(Call{op_in, Layer::posix, weir::wire::kBelow | weir::wire::kNested, 0, file_of(in),
                     span.start, span.end, at, bytes});
  }
  record_transfer(op, true, out, n, out_at, result, span);
  return result;
}

// Where a copy starts when the program gave an offset. Called before the call, which moves it; a
// null pointer means the descriptor's own position. A bad one must be the kernel's to refuse: weir
// does not look.
int64_t given(const off_t* at) {
  return at == nullptr ? kImplicit : static_cast<int64_t>(kUnknownOffset);
}

// A file is the kernel's once it is mapped. One whose bytes a layer transforms is a file that
// cannot be mapped.
bool may_be_mapped(int fd) {
  // Its locks are of the memory: as a real file it would be without them, and SQLite's processes
  // would cut a file that others have mapped.
  if (const stack::File* const f = stack::file_at(fd); f->in_memory && f->locked) return true;
  if (stack::leave(fd, stack::Reason::kMapped)) return true;
  errno = ENODEV;
  return false;
}

// Which file it is, before: another thread may close it meanwhile.
template <typename Real>
void* mapping(int fd, size_t n, bool writes, Real real) {
  const stack::File* const f = stack::known_at(fd);
  if (WEIR_LIKELY(f == nullptr)) return real();
  const uint64_t device = f->device, inode = f->inode;
  void* const at = real();
  if (at != MAP_FAILED) stack::remember_mapping(device, inode, writes, at, n);
  return at;
}

// Copies inside the kernel, of which layers see nothing; to b.
template <typename Real>
ssize_t through_both(int a, int b, Real copy) {
  if (WEIR_LIKELY(stack::file_at(a) == nullptr && stack::file_at(b) == nullptr)) return copy();
  const auto real = [&] {
    const ssize_t n = copy();
    return n < 0 && errno == ENOSPC && stack::make_space(b) ? copy() : n;
  };
  if (stack::is_transformed(a) || stack::is_transformed(b)) {  // programs then read and write
    errno = EINVAL;
    return -1;
  }
  if (stack::file_at(a) == stack::file_at(b)) return stack::through_kernel(a, real);
  const bool swapped =
      stack::file_at(b) <
      stack::file_at(
          a);  // one order for all: two copies the two ways round must not wait for each other
  return stack::through_kernel(swapped ? b : a,
                               [&] { return stack::through_kernel(swapped ? a : b, real); });
}

template <typename Real>
void* map_seen(size_t n, int protection, int flags, int fd, off_t at, Real real) {
  if (WEIR_UNLIKELY((flags & MAP_FIXED) != 0 || (protection & PROT_WRITE) == 0))
    stack::memory_changes();
  if ((flags & MAP_ANONYMOUS) != 0) return real();
  const bool writes = (flags & MAP_SHARED) != 0 && (protection & PROT_WRITE) != 0;
  if (WEIR_UNLIKELY(stack::file_at(fd) != nullptr) &&
      ((writes && !stack::reserve(fd, static_cast<uint64_t>(at), n)) || !may_be_mapped(fd)))
    return MAP_FAILED;
  if (WEIR_UNLIKELY(!recording())) return mapping(fd, n, writes, real);
  void* result = nullptr;
  on_descriptor(Op::kMmap, fd, static_cast<uint64_t>(at), n, [&] {
    result = mapping(fd, n, writes, real);
    return result == MAP_FAILED ? -1 : 0;
  });
  if (result != MAP_FAILED) mapped(result, file_of(fd));
  return result;
}

// Memory that no file lies behind is no I/O.
template <typename Real>
int on_mapping(Op op, bool forget, void* at, size_t n, Real real) {
  if (forget) {
    stack::memory_changes();
    stack::forget_mapping(at, n);
  }
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint32_t file = mapped_file(at, forget);
  if (file == 0) return real();
  const uint64_t start = base::ticks();
  const int result = real();
  Call call{op, Layer::posix, 0, 0, file, start, base::ticks(), kUnknownOffset, clip(n)};
  set_outcome(call, result < 0);
  record_call(call);
  return result;
}

long with_errno(long result) {
  if (!base::failed(result)) return result;
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace

void* weir::hook::map_by_number(void* wish, size_t n, int protection, int flags, int fd, off_t at) {
  return map_seen(n, protection, flags, fd, at, [=] {
    return reinterpret_cast<void*>(with_errno(base::system_call(
        SYS_mmap, reinterpret_cast<long>(wish), static_cast<long>(n), protection, flags, fd, at)));
  });
}

int weir::hook::unmap_by_number(void* at, size_t n) {
  return on_mapping(Op::kMunmap, true, at, n, [=] {
    return static_cast<int>(with_errno(
        base::system_call(SYS_munmap, reinterpret_cast<long>(at), static_cast<long>(n))));
  });
}

#define WEIR_MMAP(symbol)                                                                       \
  WEIR_HOOK(void*, symbol, void* wish, size_t n, int protection, int flags, int fd, off_t at) { \
    return map_seen(n, protection, flags, fd, at,                                               \
                    [=] { return WEIR_REAL(symbol)(wish, n, protection, flags, fd, at); });     \
  }
WEIR_MMAP(mmap)
WEIR_MMAP(mmap64)

WEIR_HOOK(int, munmap, void* at, size_t n) {
  return on_mapping(Op::kMunmap, true, at, n, [=] { return WEIR_REAL(munmap)(at, n); });
}
WEIR_HOOK(int, msync, void* at, size_t n, int flags) {
  return on_mapping(Op::kMsync, false, at, n, [=] { return WEIR_REAL(msync)(at, n, flags); });
}

// What was copied from or to before may be out of reach now.
WEIR_HOOK(int, mprotect, void* at, size_t n, int protection) {
  const int result = WEIR_REAL(mprotect)(at, n, protection);
  stack::memory_changes();
  return result;
}

#define WEIR_SENDFILE(symbol)                                                                     \
  WEIR_HOOK(ssize_t, symbol, int out, int in, off_t* at, size_t n) {                              \
    return copying_inside(Op::kSendfile, Op::kSendfileIn, in, given(at), out, kImplicit, n, [&] { \
      return through_both(in, out, [&] { return WEIR_REAL(symbol)(out, in, at, n); });            \
    });                                                                                           \
  }
WEIR_SENDFILE(sendfile)
WEIR_SENDFILE(sendfile64)

WEIR_HOOK(ssize_t, copy_file_range, int in, off_t* in_at, int out, off_t* out_at, size_t n,
          unsigned flags) {
  return copying_inside(
      Op::kCopyFileRange, Op::kCopyFileRangeIn, in, given(in_at), out, given(out_at), n, [&] {
        return through_both(
            in, out, [&] { return WEIR_REAL(copy_file_range)(in, in_at, out, out_at, n, flags); });
      });
}

WEIR_HOOK(ssize_t, splice, int in, off_t* in_at, int out, off_t* out_at, size_t n, unsigned flags) {
  return copying_inside(Op::kSplice, Op::kSpliceIn, in, given(in_at), out, given(out_at), n, [&] {
    return through_both(in, out,
                        [&] { return WEIR_REAL(splice)(in, in_at, out, out_at, n, flags); });
  });
}

// Of requests on files most name one (FIONREAD, FITRIM), those that share blocks a second one.
WEIR_HOOK(int, ioctl, int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  const auto real = [=] { return WEIR_REAL(ioctl)(fd, request, argument); };
  if (WEIR_UNLIKELY(request == FICLONE))
    return static_cast<int>(through_both(fd, static_cast<int>(argument), real));
  return stack::through_kernel(fd, real);
}
