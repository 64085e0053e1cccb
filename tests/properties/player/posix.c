// SPDX-License-Identifier: Apache-2.0
// Operations on descriptors and paths. Slots that hold no descriptor are -1, and the call says
// EBADF.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "player.h"

static int* slot(const struct op* op, int word) {
  return &fds[(unsigned long)op->n[word] % kSlots];
}
static int fd(const struct op* op, int word) { return *slot(op, word); }
static size_t size(const struct op* op, int word) {
  return (size_t)op->n[word] <= kLargest ? (size_t)op->n[word] : kLargest;
}

static void take(int* to, int got) {
  result(got, got < 0);
  if (got >= 0) {
    if (*to >= 0 && *to != got) close(*to);
    *to = got;
  }
}

// open SLOT PATH FLAGS MODE HOW
static void do_open(const struct op* op) {
  const int flags = (int)op->n[2];
  const mode_t mode = (mode_t)op->n[3];
  int* to = slot(op, 0);
  if (*to >= 0) close(*to), *to = -1;
  errno = 0;
  switch (op->n[4]) {
    case 1: return take(to, openat(AT_FDCWD, op->words[1], flags, mode));
    case 2: return take(to, open64(op->words[1], flags, mode));
    case 3: return take(to, creat(op->words[1], mode));
  }
  take(to, open(op->words[1], flags, mode));
}
static void do_close(const struct op* op) {
  const int done = close(fd(op, 0));
  result(done, done < 0);
  *slot(op, 0) = -1;
}
static void do_read(const struct op* op) {
  char* to = room(size(op, 1));
  const ssize_t n = read(fd(op, 0), to, size(op, 1));
  result_of(n, n < 0, to, n);
}
static void do_write(const struct op* op) {
  const ssize_t n = write(fd(op, 0), bytes_of(op, size(op, 1)), size(op, 1));
  result(n, n < 0);
}
static void do_pread(const struct op* op) {
  char* to = room(size(op, 1));
  const ssize_t n = pread(fd(op, 0), to, size(op, 1), op->n[2]);
  result_of(n, n < 0, to, n);
}
static void do_pwrite(const struct op* op) {
  const ssize_t n = pwrite(fd(op, 0), bytes_of(op, size(op, 1)), size(op, 1), op->n[2]);
  result(n, n < 0);
}

// Vectors: SLOT OFFSET SIZES...; an offset of -1 is the descriptor's own.
static int pieces(const struct op* op, char* memory, struct iovec* v) {
  const int count = op->count - 2;
  for (int i = 0; i < count; ++i) {
    v[i] = (struct iovec){memory, size(op, 2 + i)};
    memory += v[i].iov_len;
  }
  return count;
}
static size_t sum(const struct op* op) {
  size_t all = 0;
  for (int i = 2; i < op->count; ++i) all += size(op, i);
  return all;
}
static void do_readv(const struct op* op) {
  struct iovec v[kArguments];
  char* to = room(sum(op) + 1);
  const int count = pieces(op, to, v);
  const ssize_t n =
      op->n[1] < 0 ? readv(fd(op, 0), v, count) : preadv(fd(op, 0), v, count, op->n[1]);
  result_of(n, n < 0, to, n);
}
static void do_writev(const struct op* op) {
  struct iovec v[kArguments];
  const int count = pieces(op, bytes_of(op, sum(op) + 1), v);
  const ssize_t n =
      op->n[1] < 0 ? writev(fd(op, 0), v, count) : pwritev(fd(op, 0), v, count, op->n[1]);
  result(n, n < 0);
}
static void do_readv2(const struct op* op) {
  struct iovec v[kArguments];
  char* to = room(sum(op) + 1);
  const int count = pieces(op, to, v);
  const ssize_t n = preadv2(fd(op, 0), v, count, op->n[1], 0);
  result_of(n, n < 0, to, n);
}
static void do_writev2(const struct op* op) {
  struct iovec v[kArguments];
  const int count = pieces(op, bytes_of(op, sum(op) + 1), v);
  const ssize_t n = pwritev2(fd(op, 0), v, count, op->n[1], op->n[1] % 2 == 0 ? RWF_DSYNC : 0);
  result(n, n < 0);
}
static void do_lseek(const struct op* op) {
  const off_t at = lseek(fd(op, 0), op->n[1], (int)op->n[2]);
  result(at, at < 0);
}

#define SIMPLE(name, call)               \
  static void do_##name(const struct op* op) { \
    const long done = (call);            \
    result(done, done < 0);              \
  }
SIMPLE(ftruncate, ftruncate(fd(op, 0), op->n[1]))
SIMPLE(truncate, truncate(op->words[0], op->n[1]))
SIMPLE(fallocate, fallocate(fd(op, 0), (int)op->n[1], op->n[2], op->n[3]))
SIMPLE(fsync, fsync(fd(op, 0)))
SIMPLE(fdatasync, fdatasync(fd(op, 0)))
SIMPLE(access, access(op->words[0], (int)op->n[1]))
SIMPLE(rename, rename(op->words[0], op->words[1]))
SIMPLE(unlink, unlink(op->words[0]))
SIMPLE(mkdir, mkdir(op->words[0], 0755))
SIMPLE(rmdir, rmdir(op->words[0]))
SIMPLE(link, link(op->words[0], op->words[1]))
SIMPLE(flock, flock(fd(op, 0), (int)op->n[1]))
SIMPLE(lockf, lockf(fd(op, 0), (int)op->n[1], op->n[2]))
SIMPLE(getfl, fcntl(fd(op, 0), F_GETFL))
SIMPLE(setfl, fcntl(fd(op, 0), F_SETFL, op->n[1]))
SIMPLE(getfd, fcntl(fd(op, 0), F_GETFD))
SIMPLE(cloexec, fcntl(fd(op, 0), F_SETFD, op->n[1]))
SIMPLE(sync_range, sync_file_range(fd(op, 0), op->n[1], op->n[2], 7))

// These return the errno itself.
static void do_posix_fallocate(const struct op* op) {
  result(posix_fallocate(fd(op, 0), op->n[1], op->n[2]), 0);
}
static void do_fadvise(const struct op* op) {
  result(posix_fadvise(fd(op, 0), op->n[1], op->n[2], (int)op->n[3]), 0);
}

static void metadata(int done, const struct stat* s) {
  result(done, done < 0);
  if (done == 0)
    say(" size %ld mode %o links %ld blksize %ld", (long)s->st_size, s->st_mode, (long)s->st_nlink,
        (long)s->st_blksize);
}
static void do_fstat(const struct op* op) {
  struct stat s;
  metadata(fstat(fd(op, 0), &s), &s);
}
static void do_stat(const struct op* op) {
  struct stat s;
  metadata(op->n[1] == 1   ? lstat(op->words[0], &s)
           : op->n[1] == 2 ? fstatat(AT_FDCWD, op->words[0], &s, 0)
                           : stat(op->words[0], &s),
           &s);
}
static void do_statx(const struct op* op) {
  struct statx s;
  const int done = statx(AT_FDCWD, op->words[0], 0, STATX_SIZE | STATX_MODE, &s);
  result(done, done < 0);
  if (done == 0) say(" size %ld mode %o", (long)s.stx_size, s.stx_mode);
}
// list DIRECTORY: its names in order
static int is_listed(const struct dirent* one) { return one->d_name[0] != '.'; }
static void do_list(const struct op* op) {
  struct dirent** names = NULL;
  const int count = scandir(op->words[0], &names, is_listed, alphasort);
  result(count, count < 0);
  for (int i = 0; i < count; ++i) {
    say(" %s", names[i]->d_name);
    free(names[i]);
  }
  free(names);
}
static void do_fionread(const struct op* op) {
  int left = -1;
  const int done = ioctl(fd(op, 0), FIONREAD, &left);
  result(done, done < 0);
  if (done == 0) say(" left %d", left);
}

static void do_dup(const struct op* op) {
  take(slot(op, 1), op->n[2] == 1 ? fcntl(fd(op, 0), F_DUPFD, 5) : dup(fd(op, 0)));
}
static void do_dup2(const struct op* op) {
  if (fd(op, 1) < 0) return do_dup(op);
  const int done =
      op->n[2] == 1 ? dup3(fd(op, 0), fd(op, 1), O_CLOEXEC) : dup2(fd(op, 0), fd(op, 1));
  result(done, done < 0);
}

// SLOT TYPE START LENGTH, TYPE: 0 read, 1 write, 2 unlock; 3: who holds it
static void do_lock(const struct op* op) {
  static const short types[] = {F_RDLCK, F_WRLCK, F_UNLCK, F_WRLCK};
  struct flock lock = {
      .l_type = types[op->n[1] % 4], .l_whence = SEEK_SET, .l_start = op->n[2], .l_len = op->n[3]};
  const int done = fcntl(fd(op, 0), op->n[1] % 4 == 3 ? F_GETLK : F_SETLK, &lock);
  result(done, done < 0);
  if (done == 0) say(" type %d", lock.l_type);
}

static void do_sendfile(const struct op* op) {
  const ssize_t n = sendfile(fd(op, 0), fd(op, 1), NULL, size(op, 2));
  result(n, n < 0);
}
// IN OFFSET OUT OFFSET SIZE; -1: the descriptor's own
static void do_copy_range(const struct op* op) {
  off_t from = op->n[1], to = op->n[3];
  const ssize_t n = copy_file_range(fd(op, 0), from < 0 ? NULL : &from, fd(op, 2),
                                    to < 0 ? NULL : &to, size(op, 4), 0);
  result(n, n < 0);
}

// mmap MAP SLOT OFFSET SIZE WRITES: no more than the file has, as touching more is a signal
static void do_mmap(const struct op* op) {
  struct mapping* m = &maps[(unsigned long)op->n[0] % kMaps];
  if (m->at != NULL) munmap(m->at, m->size), m->at = NULL;
  struct stat s;
  if (fstat(fd(op, 1), &s) != 0) return result(-1, 1);
  const off_t at = op->n[2] & -4096;
  size_t length = size(op, 3);
  if (at + (off_t)length > s.st_size) length = at < s.st_size ? (size_t)(s.st_size - at) : 0;
  errno = 0;
  char* got =
      mmap(NULL, length, op->n[4] ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd(op, 1), at);
  result(got != MAP_FAILED ? (long)length : -1, got == MAP_FAILED);
  if (got != MAP_FAILED) *m = (struct mapping){got, length};
}
static int in_map(const struct op* op, const struct mapping** m, size_t* at, size_t* length) {
  *m = &maps[(unsigned long)op->n[0] % kMaps];
  if ((*m)->at == NULL) return 0;
  *at = (size_t)op->n[1] % (*m)->size;
  *length = size(op, 2);
  if (*at + *length > (*m)->size) *length = (*m)->size - *at;
  return 1;
}
static void do_mread(const struct op* op) {
  const struct mapping* m;
  size_t at, length;
  if (in_map(op, &m, &at, &length)) result_of((long)length, 0, m->at + at, (long)length);
}
static void do_mwrite(const struct op* op) {
  const struct mapping* m;
  size_t at, length;
  if (in_map(op, &m, &at, &length))
    memcpy(m->at + at, bytes_of(op, length), length), result((long)length, 0);
}
static void do_munmap(const struct op* op) {
  struct mapping* m = &maps[(unsigned long)op->n[0] % kMaps];
  if (m->at != NULL) result(munmap(m->at, m->size), 0);
  m->at = NULL;
}

const struct entry posix_actions[] = {
    {"open", do_open, 5},
    {"close", do_close, 1},
    {"read", do_read, 2},
    {"write", do_write, 2},
    {"pread", do_pread, 3},
    {"pwrite", do_pwrite, 3},
    {"readv", do_readv, 3},
    {"writev", do_writev, 3},
    {"readv2", do_readv2, 3},
    {"writev2", do_writev2, 3},
    {"lseek", do_lseek, 3},
    {"ftruncate", do_ftruncate, 2},
    {"truncate", do_truncate, 2},
    {"fallocate", do_fallocate, 4},
    {"posix_fallocate", do_posix_fallocate, 3},
    {"fsync", do_fsync, 1},
    {"fdatasync", do_fdatasync, 1},
    {"fadvise", do_fadvise, 4},
    {"sync_range", do_sync_range, 3},
    {"access", do_access, 2},
    {"fstat", do_fstat, 1},
    {"stat", do_stat, 2},
    {"statx", do_statx, 1},
    {"fionread", do_fionread, 1},
    {"dup", do_dup, 3},
    {"dup2", do_dup2, 3},
    {"getfl", do_getfl, 1},
    {"setfl", do_setfl, 2},
    {"getfd", do_getfd, 1},
    {"cloexec", do_cloexec, 2},
    {"rename", do_rename, 2},
    {"unlink", do_unlink, 1},
    {"link", do_link, 2},
    {"mkdir", do_mkdir, 1},
    {"rmdir", do_rmdir, 1},
    {"list", do_list, 1},
    {"flock", do_flock, 2},
    {"lockf", do_lockf, 3},
    {"lock", do_lock, 4},
    {"sendfile", do_sendfile, 3},
    {"copy_range", do_copy_range, 5},
    {"mmap", do_mmap, 5},
    {"mread", do_mread, 3},
    {"mwrite", do_mwrite, 3},
    {"munmap", do_munmap, 1},
    {NULL, NULL, 0},
};
