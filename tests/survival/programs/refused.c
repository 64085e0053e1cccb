// SPDX-License-Identifier: Apache-2.0
// Every hooked call on paths and buffers with arguments that cannot be: prints result and errno of
// each, never crashes.
#include <sys/sendfile.h>
#define SHOW(...)                                                                          \
  do {                                                                                     \
    errno = 0;                                                                             \
    long result = (long)(__VA_ARGS__);                                                     \
    int error = errno;                                                                     \
    char text[256];                                                                        \
    int n = snprintf(text, sizeof text, "%s = %ld %d\n", #__VA_ARGS__, result, error);     \
    syscall(SYS_write, 1, text, n);                                                        \
  } while (0)

static void paths(char* p) {
  struct stat st;
  char text[64];
  SHOW(open(p, O_RDONLY));
  SHOW(open(p, O_TMPFILE | O_RDONLY));
  SHOW(open(p, O_CREAT | O_RDWR, 0644) >= 0);
  SHOW(open64(p, O_RDONLY | O_DIRECTORY | O_CREAT, 0644));
  SHOW(openat(AT_FDCWD, p, O_RDONLY));
  SHOW(openat(999, p, O_RDONLY));
  SHOW(creat(p, 0644));
  SHOW(stat(p, &st));
  SHOW(lstat(p, &st));
  SHOW(fstatat(AT_FDCWD, p, &st, 0));
  SHOW(fstatat(AT_FDCWD, p, &st, 0x40000000));
  SHOW(fstatat(999, p, &st, 0));
  SHOW(statx(AT_FDCWD, p, 0x40000000, STATX_ALL, (void*)text));
  SHOW(statx(AT_FDCWD, p, 0, 0x80000000u, (void*)text));
  SHOW(access(p, 0x1000));
  SHOW(access(p, R_OK));
  SHOW(faccessat(AT_FDCWD, p, R_OK, 0x40000000));
  SHOW(mkdir(p, 0755));
  SHOW(mkdirat(999, p, 0755));
  SHOW(rmdir(p));
  SHOW(unlink(p));
  SHOW(unlinkat(AT_FDCWD, p, 0x40000000));
  SHOW(remove(p));
  SHOW(rename(p, "to"));
  SHOW(rename("from", p));
  SHOW(renameat(AT_FDCWD, p, 999, "to"));
  SHOW(renameat2(AT_FDCWD, p, AT_FDCWD, "to", 0x40000000));
  SHOW(link(p, "to"));
  SHOW(linkat(AT_FDCWD, p, AT_FDCWD, "to", 0x40000000));
  SHOW(symlink(p, "to"));
  SHOW(symlink("to", p));
  SHOW(symlinkat("to", 999, p));
  SHOW(readlink(p, text, sizeof text));
  SHOW(readlink(p, text, 0));
  SHOW(readlinkat(AT_FDCWD, p, text, 0));
  SHOW(truncate(p, 0));
  SHOW(truncate(p, -1));
  SHOW(chdir(p));
  SHOW(syscall(SYS_open, p, O_RDONLY));
  SHOW(syscall(SYS_openat, AT_FDCWD, p, O_TMPFILE | O_RDONLY));
}

static void buffers(char* p, int fd) {
  struct iovec bad = {p, 10}, half[2] = {{&(char[4]){0}, 4}, {p, 10}};
  off_t* at = (off_t*)p;
  SHOW(read(fd, p, 10));
  SHOW(write(fd, p, 10));
  SHOW(pread(fd, p, 10, 0));
  SHOW(pwrite(fd, p, 10, 0));
  SHOW(pread(fd, p, 10, -1));
  SHOW(pwrite(fd, "x", 1, -5));
  SHOW(readv(fd, &bad, 1));
  SHOW(writev(fd, &bad, 1));
  SHOW(readv(fd, half, 2));
  SHOW(writev(fd, half, 2));
  SHOW(readv(fd, (struct iovec*)p, 2));
  SHOW(writev(fd, (struct iovec*)p, 2));
  SHOW(writev(fd, (struct iovec*)p, -1));
  SHOW(writev(fd, (struct iovec*)p, 100000));
  SHOW(writev(fd, (struct iovec*)p, 0));
  SHOW(preadv(fd, (struct iovec*)p, 2, 0));
  SHOW(pwritev(fd, (struct iovec*)p, 2, 0));
  SHOW(preadv2(fd, (struct iovec*)p, 2, 0, 0));
  SHOW(pwritev2(fd, &bad, 1, 0, 0x40000000));
  SHOW(fstat(fd, (struct stat*)p));
  SHOW(stat(".", (struct stat*)p));
  SHOW(fcntl(fd, F_GETLK, p));
  SHOW(fcntl(fd, 12345, p));
  SHOW(sendfile(fd, 0, at, 10));
  SHOW(copy_file_range(fd, at, fd, NULL, 1, 0));
  SHOW(copy_file_range(fd, NULL, fd, NULL, 1, 0x40000000));
  SHOW(splice(fd, at, fd, NULL, 1, 0));
  SHOW(readlink("link", p, 10));
  SHOW(read(999, p, 10));
  SHOW(write(-1, p, 10));
  SHOW(lseek(fd, -1, SEEK_SET));
  SHOW(lseek(fd, 0, 12345));
  SHOW(lseek(999, 0, SEEK_SET));
  SHOW(ftruncate(fd, -1));
  SHOW(fallocate(fd, 0, -1, 1));
  SHOW(posix_fallocate(fd, -1, 1));
  SHOW(posix_fadvise(fd, 0, 0, 12345));
  SHOW(fsync(999));
  SHOW(dup(999));
  SHOW(dup2(999, 5));
  SHOW(dup2(fd, -1));
  SHOW(dup3(fd, fd, 0));
  SHOW(close(999));
  SHOW(close_range(5, 3, 0));
  SHOW(mmap(NULL, 0, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
  SHOW(mmap(NULL, 4096, PROT_READ, MAP_SHARED, 999, 0) == MAP_FAILED);
  SHOW(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 1) == MAP_FAILED);
  SHOW(munmap((void*)1, 4096));
  SHOW(msync((void*)1, 4096, MS_SYNC));
}

int main(void) {
  int fd = open_new("file");
  MUST(write(fd, "0123456789", 10) == 10 && lseek(fd, 0, SEEK_SET) == 0 &&
       symlink("file", "link") == 0);
  char* edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(edge != MAP_FAILED && mprotect(edge + 4096, 4096, PROT_NONE) == 0);
  memset(edge, 'e', 4096);
  paths((char*)16);
  paths(NULL);
  paths(edge + 4000);  // runs into the page that cannot be read
  paths(edge + 10);    // longer than a path may be, and then so
  paths("");
  paths("no/such/file");
  buffers((char*)16, fd);
  buffers(edge + 4096, fd);
  return 0;
}
