// SPDX-License-Identifier: Apache-2.0
// Bytes through a file under layers. The usual call of a stack that holds nothing goes straight to
// its first layer; one that holds is entered under the file's lock, with its position.
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/syscall.h"
#include "layers/machinery/stack/cancel.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/notes.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/reach.h"
#include "layers/machinery/stack/sharing.h"

namespace weir::stack {

constinit uint64_t file_limit = ~uint64_t{0};
constinit TestForCancel test_for_cancel = nullptr;

namespace {

constexpr uint64_t kMostBytes = 0x7ffff000;          // of one call, as the kernel cuts it
// Beyond it the kernel is asked what the file system allows.
constexpr uint64_t kFarOut = uint64_t{1} << 43;
constexpr int kPlainFlags = RWF_HIPRI | RWF_SYNC | RWF_DSYNC | RWF_APPEND;
constexpr int64_t kImplicit = -1;

WEIR_COLD ssize_t failed(Result r) {
  errno = static_cast<int>(-r);
  return -1;
}
WEIR_INLINE ssize_t done(Result r) { return WEIR_LIKELY(r >= 0) ? r : failed(r); }

// One call of the program.
struct Request {
  File* file;
  int fd;
  const iovec* pieces;
  int count;
  uint64_t bytes;
  int64_t offset;  // kImplicit: the position
  int flags;       // of preadv2
  bool writes;
};

// The call as the kernel would have it from the program.
Result by_kernel(const Request& q, int64_t offset) {
  const auto pieces = reinterpret_cast<long>(q.pieces);
  if (q.count != 1 || q.flags != 0) {
    return base::system_call(q.writes ? SYS_pwritev2 : SYS_preadv2, q.fd, pieces, q.count, offset,
                             0, q.flags);
  }
  const auto base = reinterpret_cast<long>(q.pieces[0].iov_base);
  const long bytes = static_cast<long>(q.pieces[0].iov_len);
  if (offset == kImplicit)
    return base::system_call(q.writes ? SYS_write : SYS_read, q.fd, base, bytes);
  return base::system_call(q.writes ? SYS_pwrite64 : SYS_pread64, q.fd, base, bytes, offset);
}

Access access_of(const Request& q) { return q.writes ? Access::kReads : Access::kWrites; }

// Whether layers may copy from or to all of it (layers/machinery/stack/reach.h).
WEIR_INLINE bool within_reach(const Request& q) {
  for (int i = 0; i < q.count; ++i) {
    if (WEIR_UNLIKELY(!within_reach(q.pieces[i].iov_base, q.pieces[i].iov_len, access_of(q))))
      return false;
  }
  return true;
}

bool appends(const Request& q) {
  return q.writes && ((q.file->flags & O_APPEND) != 0 || (q.flags & RWF_APPEND) != 0);
}

bool allowed(const File* f, bool writes) {
  const int mode = f->flags & O_ACCMODE;
  return mode == O_RDWR || mode == (writes ? O_WRONLY : O_RDONLY);
}

// A signal handler within a call on the same file: the kernel has the file's bytes but for those in
// the layers. The interrupted call has moved the position on already.
Result within(const Request& q) {
  if (q.offset != kImplicit) return by_kernel(q, q.offset);
  const uint64_t at = base::own_fetch_add(&q.file->position, q.bytes);
  const Result r = by_kernel(q, static_cast<int64_t>(at));
  base::own_fetch_add(&q.file->position, (r > 0 ? static_cast<uint64_t>(r) : 0) - q.bytes);
  return r;
}

// Whatever the layers do not decide: limits, far offsets, flags that only the kernel knows. The
// file lock is held.
Result through(const Request& q, int64_t offset) {
  File* const f = q.file;
  flush_inside(f);
  const Result r = by_kernel(q, offset);
  f->enter.invalidate->kind->invalidate(*f->enter.invalidate);
  return r;
}

Result sync_after(const Request& q, Result r) {
  const bool all = (q.file->flags & O_SYNC) == O_SYNC || (q.flags & RWF_SYNC) != 0;
  const bool data = (q.file->flags & O_DSYNC) != 0 || (q.flags & RWF_DSYNC) != 0;
  if (WEIR_LIKELY(!all && !data)) return r;
  const Result synced = q.file->enter.sync->kind->sync(*q.file->enter.sync, !all);
  if (synced >= 0) return r;
  defer(q.file, nullptr, static_cast<int>(-synced), 0);
  return -take_error(q.file);
}

// Where the call begins. The position moves beyond it in one instruction: a handler that interrupts
// has a place of its own, before or behind the call.
WEIR_INLINE uint64_t begin_at(const Request& q) {
  if (q.offset != kImplicit) return static_cast<uint64_t>(q.offset);
  return base::own_fetch_add(&q.file->position, q.bytes);
}

Result write_inside(const Request& q) {
  File* const f = q.file;
  if (const int error = take_error(f); WEIR_UNLIKELY(error != 0)) return -error;
  const uint64_t before = f->position;
  uint64_t offset;
  if (WEIR_UNLIKELY(appends(q))) {
    const Result end = f->enter.size->kind->size(*f->enter.size);
    if (end < 0) return end;
    offset = static_cast<uint64_t>(end);
    if (q.offset == kImplicit) f->position = offset + q.bytes;
  } else {
    offset = begin_at(q);
  }
  const uint64_t limit = file_limit < kFarOut ? file_limit : kFarOut;
  const bool unusual = q.bytes > limit || offset > limit - q.bytes ||
                       ((q.flags & RWF_APPEND) != 0 && (f->flags & O_APPEND) == 0);
  Result r;
  if (WEIR_UNLIKELY(unusual && !f->transforms)) {
    r = through(q, static_cast<int64_t>(offset));
  } else {
    r = f->enter.write->kind->write(*f->enter.write, {q.pieces, q.count, q.bytes, offset});
  }
  const uint64_t moved = r > 0 ? static_cast<uint64_t>(r) : 0;
  if (WEIR_UNLIKELY(moved < q.bytes) && q.offset == kImplicit) {
    if (moved == 0 && appends(q)) f->position = before;
    else base::own_fetch_add(&f->position, moved - q.bytes);
  }
  if (moved == 0) return r;
  publish_end(f, offset + moved);
  r = sync_after(q, r);
  if (WEIR_UNLIKELY(f->syncs)) flush_inside(f);
  return r;
}

Result read_inside(const Request& q) {
  File* const f = q.file;
  const uint64_t offset = begin_at(q);
  const bool is_far = WEIR_UNLIKELY(offset >= kFarOut) && !f->transforms;
  const Result r =
      is_far ? through(q, static_cast<int64_t>(offset))
             : f->enter.read->kind->read(*f->enter.read, {q.pieces, q.count, q.bytes, offset});
  if (q.offset == kImplicit)
    base::own_fetch_add(&f->position, (r > 0 ? static_cast<uint64_t>(r) : 0) - q.bytes);
  return r;
}

// The file has left its layers, but owes an error.
Result after_leaving(const Request& q) {
  if (q.writes) {
    if (const int error = take_error(q.file); error != 0) {
      mark_plain(q.file);
      return -error;
    }
  }
  return by_kernel(q, q.offset);
}

WEIR_COLD Result not_inside(const Request& q) {
  if (!may_change()) {
    leave(q.file, Reason::kForked);
    return by_kernel(q, q.offset);
  }
  if (!lock(q.file)) return within(q);
  unlock(q.file);
  return file_at(q.fd) == q.file ? after_leaving(q) : by_kernel(q, q.offset);
}

// A stack that holds. q's bytes are at least one.
Result inside(const Request& q) {
  File* const f = q.file;
  if (WEIR_UNLIKELY(q.flags & ~kPlainFlags) != 0 || !may_change()) {
    if (!may_change()) return not_inside(q);
    const Through t = begin_through(f, q.fd);
    const Result r = by_kernel(q, q.offset);
    end_through(t);
    return r;
  }
  if (WEIR_UNLIKELY(!lock(f))) return not_inside(q);
  if (WEIR_UNLIKELY(f->left || file_at(q.fd) != f)) {
    unlock(f);
    return not_inside(q);
  }
  if (f->empty) look_after_empty(f, appends(q));
  if (WEIR_UNLIKELY(f->leaving != 0)) {
    leave_inside(f, static_cast<Reason>(f->leaving), f->top);
    if (f->left) {
      unlock(f);
      call_back_sharers(f, static_cast<Reason>(f->leaving));
      return not_inside(q);
    }
  }
  const Result r = q.writes ? write_inside(q) : read_inside(q);
  const uint8_t leaving = f->leaving;
  if (WEIR_UNLIKELY(leaving != 0)) leave_inside(f, static_cast<Reason>(leaving), f->top);
  unlock(f);
  if (WEIR_UNLIKELY(leaving != 0)) call_back_sharers(f, static_cast<Reason>(leaving));
  return r;
}

WEIR_COLD Result refused(const Request& q) {
  return !q.writes && q.offset >= kImplicit && writes_alone(q.file) ? -EBADF
                                                                    : by_kernel(q, q.offset);
}

// A buffer of which some cannot be copied: the kernel moves what lies before, and says EFAULT when
// that is nothing.
WEIR_COLD Result out_of_reach(const Request& q) {
  Request part = q;
  part.bytes = 0;
  for (part.count = 0; part.count < q.count; ++part.count) {
    const iovec& piece = q.pieces[part.count];
    if (!within_reach(piece.iov_base, piece.iov_len, access_of(q))) break;
    part.bytes += piece.iov_len;
  }
  if (part.count == q.count) return inside(q);  // it could be, by now
  iovec last = q.pieces[part.count];
  last.iov_len = find_reach(last.iov_base, last.iov_len,
                            access_of(q));  // before layers map memory of their own there
  const Result before = part.bytes == 0 ? 0 : inside(part);
  if (before < 0 || static_cast<uint64_t>(before) < part.bytes) return before;
  Request rest = q;
  rest.pieces = &last;
  rest.count = 1;
  rest.bytes = last.iov_len;
  if (q.offset != kImplicit) rest.offset = q.offset + before;
  if (last.iov_len != 0) {
    const Result r = inside(rest);
    return r < 0 && before > 0 ? before : r < 0 ? r : before + r;
  }
  if (before > 0) return before;
  if (q.writes || q.file->transforms) return q.writes ? -EFAULT : by_kernel(q, q.offset);
  const Through t = begin_through(q.file, q.fd);  // at the end of the file it is no error
  const Result r = by_kernel(q, q.offset);
  end_through(t);
  return r;
}

Result transfer(const Request& q) {
  File* const f = q.file;
  if (WEIR_UNLIKELY(q.bytes == 0 || q.bytes > kMostBytes || q.offset < kImplicit ||
                    !allowed(f, q.writes)))
    return refused(q);
  if (WEIR_LIKELY(f->holds)) {
    if (WEIR_UNLIKELY(!within_reach(q))) return out_of_reach(q);
    return inside(q);
  }
  if (WEIR_UNLIKELY(q.flags != 0 || f->left)) return by_kernel(q, q.offset);
  const Transfer t{q.pieces, q.count, q.bytes,
                   q.offset == kImplicit ? kKernelOffset : static_cast<uint64_t>(q.offset), q.fd};
  return q.writes ? f->enter.write->kind->write(*f->enter.write, t)
                  : f->enter.read->kind->read(*f->enter.read, t);
}

WEIR_COLD ssize_t any_piece(File* f, int fd, const void* p, size_t n, int64_t at, bool writes) {
  const iovec piece{const_cast<void*>(p), n};
  if (n > kMostBytes && static_cast<ssize_t>(n) > 0) {
    const iovec most{const_cast<void*>(p), kMostBytes};
    return done(transfer({f, fd, &most, 1, kMostBytes, at, 0, writes}));
  }
  return done(transfer({f, fd, &piece, 1, n, at, 0, writes}));
}

// Through layers that hold nothing, without a detour.
WEIR_INLINE ssize_t one_piece(File* f, int fd, const void* p, size_t n, int64_t at, bool writes) {
  if (WEIR_UNLIKELY(f->holds || n - 1 >= kMostBytes || f->left))
    return any_piece(f, fd, p, n, at, writes);
  const iovec piece{const_cast<void*>(p), n};
  const Transfer t{&piece, 1, n, at == kImplicit ? kKernelOffset : static_cast<uint64_t>(at), fd};
  return done(writes ? f->enter.write->kind->write(*f->enter.write, t)
                     : f->enter.read->kind->read(*f->enter.read, t));
}

// A vector's bytes; 0 sends it to the kernel, which refuses it or moves nothing.
uint64_t sum(const iovec* v, int count) {
  if (count <= 0 || count > IOV_MAX ||
      !within_reach(v, sizeof *v * static_cast<uint64_t>(count), Access::kReads))
    return 0;
  uint64_t bytes = 0;
  for (int i = 0; i < count; ++i) {
    if (v[i].iov_len > kMostBytes || (bytes += v[i].iov_len) > kMostBytes) return ~uint64_t{0};
  }
  return bytes;
}

ssize_t vector(File* f, int fd, const iovec* v, int count, int64_t at, int flags, bool writes) {
  if (WEIR_UNLIKELY(!writes && at >= kImplicit && writes_alone(f))) return done(-EBADF);
  const Request q{f, fd, v, count, sum(v, count), at, flags, writes};
  if (WEIR_UNLIKELY(q.bytes > kMostBytes) &&
      f->holds) {  // more than one call moves: the kernel cuts it
    const Through t = begin_through(f, fd);
    const Result r = base::system_call(writes ? SYS_pwritev2 : SYS_preadv2, fd,
                                       reinterpret_cast<long>(v), count, at, 0, flags);
    end_through(t);
    return done(r);
  }
  if (WEIR_UNLIKELY(q.bytes == 0) && flags == 0) {
    const long call =
        at == kImplicit ? (writes ? SYS_writev : SYS_readv) : (writes ? SYS_pwritev : SYS_preadv);
    return done(base::system_call(call, fd, reinterpret_cast<long>(v), count, at, 0));
  }
  return done(transfer(q));
}

}  // namespace

bool readable(const void* p, uint64_t bytes) { return within_reach(p, bytes, Access::kReads); }

ssize_t read(File* f, int fd, void* to, size_t n) {
  return one_piece(f, fd, to, n, kImplicit, false);
}
ssize_t write(File* f, int fd, const void* from, size_t n) {
  return one_piece(f, fd, from, n, kImplicit, true);
}
// A negative offset is the kernel's to refuse; -1 would be taken for no offset.
ssize_t pread(File* f, int fd, void* to, size_t n, off_t at) {
  if (WEIR_UNLIKELY(at < 0))
    return done(
        base::system_call(SYS_pread64, fd, reinterpret_cast<long>(to), static_cast<long>(n), at));
  return one_piece(f, fd, to, n, at, false);
}
ssize_t pwrite(File* f, int fd, const void* from, size_t n, off_t at) {
  if (WEIR_UNLIKELY(at < 0))
    return done(base::system_call(SYS_pwrite64, fd, reinterpret_cast<long>(from),
                                  static_cast<long>(n), at));
  return one_piece(f, fd, from, n, at, true);
}
ssize_t readv(File* f, int fd, const iovec* v, int count) {
  return vector(f, fd, v, count, kImplicit, 0, false);
}
ssize_t writev(File* f, int fd, const iovec* v, int count) {
  return vector(f, fd, v, count, kImplicit, 0, true);
}
ssize_t preadv(File* f, int fd, const iovec* v, int count, off_t at) {
  if (WEIR_UNLIKELY(at < 0))
    return done(base::system_call(SYS_preadv, fd, reinterpret_cast<long>(v), count, at, 0));
  return vector(f, fd, v, count, at, 0, false);
}
ssize_t pwritev(File* f, int fd, const iovec* v, int count, off_t at) {
  if (WEIR_UNLIKELY(at < 0))
    return done(base::system_call(SYS_pwritev, fd, reinterpret_cast<long>(v), count, at, 0));
  return vector(f, fd, v, count, at, 0, true);
}
ssize_t preadv2(File* f, int fd, const iovec* v, int count, off_t at, int flags) {
  return vector(f, fd, v, count, at, flags, false);
}
ssize_t pwritev2(File* f, int fd, const iovec* v, int count, off_t at, int flags) {
  return vector(f, fd, v, count, at, flags, true);
}

}  // namespace weir::stack
