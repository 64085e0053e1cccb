// SPDX-License-Identifier: Apache-2.0
// The calls of a program on a file under layers: each gives back what libc's function would, and
// sets errno as it would. Decides what POSIX says of offsets, O_APPEND, O_SYNC, access modes,
// limits and deferred errors, so that layers need not. `fd` is the number that the program used,
// `f` what file_at(fd) gave; by the time a call is let in the file may have left its layers, or the
// number may have become another file: then the call is the kernel's, made by a system call.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "layers/machinery/stack/file.h"
#include "layers/machinery/stack/lock.h"

//
// Threads: any. In a signal handler within a call of its own thread on the same file a call goes to
// the kernel, as the layers' state is half changed then; from other handlers as from a thread.
// Results: what libc returns, or -1 and errno. Cost: the file's lock where a layer holds bytes (one
// exchange while nobody else has it); otherwise none.
namespace weir::stack {

ssize_t read(File* f, int fd, void* to, size_t n);
ssize_t write(File* f, int fd, const void* from, size_t n);
ssize_t pread(File* f, int fd, void* to, size_t n, off_t at);
ssize_t pwrite(File* f, int fd, const void* from, size_t n, off_t at);
ssize_t readv(File* f, int fd, const iovec* v, int count);
ssize_t writev(File* f, int fd, const iovec* v, int count);
ssize_t preadv(File* f, int fd, const iovec* v, int count, off_t at);
ssize_t pwritev(File* f, int fd, const iovec* v, int count, off_t at);
ssize_t preadv2(File* f, int fd, const iovec* v, int count, off_t at,
                int flags);  // at -1: the position
ssize_t pwritev2(File* f, int fd, const iovec* v, int count, off_t at, int flags);
off_t lseek(File* f, int fd, off_t offset, int whence);
int fsync(File* f, int fd, bool data_only);
int ftruncate(File* f, int fd, off_t bytes);

// The size that programs must see, when that is more than the kernel says; `about` is what the
// kernel said.
void patch_size(File* f, int fd, struct stat* about);

// Hands down every accepted byte. 0, or -1 with errno (the deferred error, which counts as
// reported).
int flush(File* f, int fd);

// A call that layers do not know (fallocate, sendfile, ioctl): while it runs the kernel has every
// accepted byte and the file's position, and afterwards the layers know that anything may have
// changed. Within the pair nothing else may enter the file.
struct Through {
  File* file;
  int fd;
  bool inside;  // false: the file has no layers any more, or this is a signal handler within a call
                // on it
};
Through begin_through(File* f, int fd);
void end_through(const Through&);  // keeps errno

// A file whose bytes on disk are not the program's: what the kernel would do to them by itself is
// refused.
inline bool is_transformed(int fd) {
  const File* const f = file_at(fd);
  return WEIR_UNLIKELY(f != nullptr) && f->transforms;
}

void follow_in_memory(File* f);  // in_memory.h

template <typename Real>
auto through_kernel(int fd, Real real) {
  File* const f = file_at(fd);
  if (WEIR_UNLIKELY(f != nullptr && f->in_memory)) {
    follow_in_memory(f);
    f->lent = true;  // a pipe may have its pages
  }
  if (WEIR_LIKELY(f == nullptr || !f->holds)) return real();
  const Through t = begin_through(f, fd);
  const auto result = real();
  end_through(t);
  return result;
}
// The same where the call may wait for others (locks): the file is not held meanwhile.
void before_waiting(int fd);
void after_waiting(int fd);  // keeps errno
void before_locking_from_position(int fd);  // lockf: the kernel's position is the program's

bool leave(int fd, Reason);

// A lock by fcntl. One on the whole file hands everything down and forgets what was read, before
// and after, and the file stays as it is: libraries lock files whole as they open them. Locks on
// ranges say that others write the same file: it leaves.
bool is_of_whole(const struct flock* range);
// The range counted from the beginning of the file: the kernel knows neither the program's position
// nor the end of what it wrote. The errno of a range that begins nowhere, or 0.
int count_from_start(File* f, int fd, struct flock* range);
// The answer to F_GETLK about `asked`, a copy of the range: without a lock in the way only the type
// changes.
void take_answer(const struct flock& asked, struct flock* range);
// Layers that transform read what they write: below them the program's descriptor for writing is
// one for reading as well.
inline bool writes_alone(const File* f) {
  return (f->transforms || f->in_memory) && !f->left && (f->flags & O_ACCMODE) == O_WRONLY;
}
bool readable(const void* p, uint64_t bytes);
void follow_in_memory(File* f);  // in_memory.h
bool lock_was_of_memory(int fd);
// real(range) is the call with that range. tests: F_GETLK or F_OFD_GETLK.
template <typename Real>
int locking(File* f, int fd, struct flock* range, bool tests, Real real) {
  if (!f->holds && !f->in_memory) return real(range);
  if (!readable(range, sizeof *range)) return real(range);
  if (range->l_type == F_RDLCK && writes_alone(f) && !tests) {
    errno = EBADF;
    return -1;
  }
  if (!f->holds) {
    if (tests) follow_in_memory(f);
    const int result = real(range);
    return result == 0 && !tests && lock_was_of_memory(fd) ? real(range) : result;
  }
  struct flock from_start = *range;
  if (const int error = count_from_start(f, fd, &from_start); error != 0) {
    errno = error;
    return -1;
  }
  if (tests) {
    const int result = real(&from_start);
    if (result == 0) take_answer(from_start, range);
    return result;
  }
  if (!is_of_whole(&from_start) && range->l_type != F_UNLCK && !f->shares)
    leave(fd, Reason::kLocked);
  before_waiting(fd);
  const int result = real(&from_start);
  after_waiting(fd);
  return result;
}

// For good: everything accepted is written, the kernel's position set, the layers closed. Files
// that a layer transforms are flushed instead. Any thread; not within a call of the same file.
void leave(File* f, Reason);
// By descriptor; false when its bytes are transformed, so that no call of the kernel can make sense
// of them.
bool leave(int fd, Reason);

}  // namespace weir::stack
