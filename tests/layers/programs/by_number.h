// SPDX-License-Identifier: Apache-2.0
// The calls of a program by libc's syscall() instead of libc's function of each: included behind
// the system's headers (x86-64).
#pragma once
#include <linux/openat2.h>
#include <sys/syscall.h>

#define L(x) ((long)(x))
#define BY1(n, a) syscall(SYS_##n, L(a))
#define BY2(n, a, b) syscall(SYS_##n, L(a), L(b))
#define BY3(n, a, b, c) syscall(SYS_##n, L(a), L(b), L(c))
#define BY4(n, a, b, c, d) syscall(SYS_##n, L(a), L(b), L(c), L(d))
#define BY5(n, a, b, c, d, e) syscall(SYS_##n, L(a), L(b), L(c), L(d), L(e))
#define BY6(n, a, b, c, d, e, f) syscall(SYS_##n, L(a), L(b), L(c), L(d), L(e), L(f))

// Every second file by openat2, which refuses a mode where no file is made.
static int openings;
static long by_open(int directory, const char *path, int flags, int mode) {
  if (openings++ % 2 == 0) return syscall(SYS_openat, directory, path, flags, mode);
  struct open_how how = {.flags = (unsigned)flags,
                         .mode = flags & (O_CREAT | O_TMPFILE & ~O_DIRECTORY) ? (unsigned)mode : 0};
  return syscall(SYS_openat2, directory, path, &how, sizeof how);
}
#define BY_OPEN(path, flags, mode, ...) by_open(AT_FDCWD, path, flags, mode)
#define BY_OPENAT(directory, path, flags, mode, ...) by_open(directory, path, flags, mode)
#define BY_FCNTL(fd, command, argument, ...) BY3(fcntl, fd, command, argument)

#define open(path, ...) BY_OPEN(path, __VA_ARGS__, 0, 0)
#define openat(directory, path, ...) BY_OPENAT(directory, path, __VA_ARGS__, 0, 0)
#define creat(path, mode) BY2(creat, path, mode)
#define close(fd) BY1(close, fd)
#define close_range(a, b, flags) BY3(close_range, a, b, flags)
#define dup(fd) BY1(dup, fd)
#define dup2(fd, to) BY2(dup2, fd, to)
#define dup3(fd, to, flags) BY3(dup3, fd, to, flags)
#define fcntl(fd, ...) BY_FCNTL(fd, __VA_ARGS__, 0, 0)
#define ioctl(fd, request, argument) BY3(ioctl, fd, request, argument)

#define read(fd, to, n) BY3(read, fd, to, n)
#define write(fd, from, n) BY3(write, fd, from, n)
#define pread(fd, to, n, at) BY4(pread64, fd, to, n, at)
#define pwrite(fd, from, n, at) BY4(pwrite64, fd, from, n, at)
#define readv(fd, v, n) BY3(readv, fd, v, n)
#define writev(fd, v, n) BY3(writev, fd, v, n)
// The offset is in two halves, of which the kernel shifts the second out.
#define preadv(fd, v, n, at) BY5(preadv, fd, v, n, at, 0)
#define pwritev(fd, v, n, at) BY5(pwritev, fd, v, n, at, 0)
#define preadv2(fd, v, n, at, flags) BY6(preadv2, fd, v, n, at, 0, flags)
#define pwritev2(fd, v, n, at, flags) BY6(pwritev2, fd, v, n, at, 0, flags)
#define lseek(fd, at, whence) BY3(lseek, fd, at, whence)
#define fsync(fd) BY1(fsync, fd)
#define fdatasync(fd) BY1(fdatasync, fd)
#define sync_file_range(fd, at, n, flags) BY4(sync_file_range, fd, at, n, flags)
#define ftruncate(fd, n) BY2(ftruncate, fd, n)
#define truncate(path, n) BY2(truncate, path, n)
#define fallocate(fd, mode, at, n) BY4(fallocate, fd, mode, at, n)
#define sendfile(out, in, at, n) BY4(sendfile, out, in, at, n)
#define copy_file_range(in, in_at, out, out_at, n, flags) \
  BY6(copy_file_range, in, in_at, out, out_at, n, flags)
#define splice(in, in_at, out, out_at, n, flags) BY6(splice, in, in_at, out, out_at, n, flags)
#define flock(fd, how) BY2(flock, fd, how)
#define mmap(at, n, protection, flags, fd, from) \
  ((void *)BY6(mmap, at, n, protection, flags, fd, from))
#define munmap(at, n) BY2(munmap, at, n)
#define msync(at, n, flags) BY3(msync, at, n, flags)

#define stat(path, to) BY2(stat, path, to)
#define lstat(path, to) BY2(lstat, path, to)
#define fstat(fd, to) BY2(fstat, fd, to)
#define fstatat(directory, path, to, flags) BY4(newfstatat, directory, path, to, flags)
#define statx(directory, path, flags, mask, to) BY5(statx, directory, path, flags, mask, to)
#define access(path, mode) BY2(access, path, mode)
#define rename(path, to) BY2(rename, path, to)
#define renameat2(a, path, b, to, flags) BY5(renameat2, a, path, b, to, flags)
#define unlink(path) BY1(unlink, path)
#define link(path, to) BY2(link, path, to)
#define symlink(path, to) BY2(symlink, path, to)
#define chmod(path, mode) BY2(chmod, path, mode)
#define fchmod(fd, mode) BY2(fchmod, fd, mode)
#define utimensat(directory, path, to, flags) BY4(utimensat, directory, path, to, flags)
#define futimens(fd, to) BY4(utimensat, fd, 0, to, 0)
