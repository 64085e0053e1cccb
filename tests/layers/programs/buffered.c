/* SPDX-License-Identifier: Apache-2.0 */
/* buffered HOW FILE BYTES PIECE [STEP [OTHER_NAME]]: one way of reading or writing a file whose
 * byte at each offset is known. Exit status 0: every byte was right and every call did what it was
 * asked for. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path, *other_name;
static unsigned long bytes, piece, step;
static unsigned char *b;

static unsigned char at(unsigned long offset) {
  return (unsigned char)((offset * 2654435761u) >> 13);
}

static void fill(unsigned long offset) {
  for (unsigned long i = 0; i < piece; ++i) b[i] = at(offset + i);
}

static void check(unsigned long n, unsigned long offset, unsigned char changed) {
  for (unsigned long i = 0; i < n; ++i) {
    if ((b[i] ^ changed) == at(offset + i)) continue;
    fprintf(stderr, "byte %lu is wrong\n", offset + i);
    exit(2);
  }
}

static void need(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(3);
}

static void read_there(int fd, unsigned long offset, unsigned char changed) {
  need(pread(fd, b, piece, (off_t)offset) == (ssize_t)piece, "pread");
  check(piece, offset, changed);
}

static void read_through(int fd) {
  unsigned long o = 0;
  long n;
  for (; (n = read(fd, b, piece)) > 0; o += (unsigned long)n) check((unsigned long)n, o, 0);
  need(n == 0 && o == bytes, "read");
}

static void read_strided(int fd) {
  for (unsigned long o = 0; o + piece <= bytes; o += step) read_there(fd, o, 0);
}

static void read_backward(int fd) {
  for (unsigned long o = bytes; o >= piece; o -= piece) read_there(fd, o - piece, 0);
}

static void read_anywhere(int fd) {
  unsigned long x = 1;
  for (unsigned long i = 0; i < step; ++i) {
    x = x * 6364136223846793005ul + 1442695040888963407ul;
    read_there(fd, (x >> 17) % (bytes - piece), 0);
  }
}

static void write_through(int fd) {
  for (unsigned long o = 0; o < bytes; o += piece) {
    fill(o);
    need(write(fd, b, piece) == (ssize_t)piece, "write");
  }
}

/* Until the other name of the file shows all bytes; the program itself does nothing. */
static void write_and_wait(int fd) {
  struct stat s = {0};
  write_through(fd);
  for (int i = 0; i < 3000 && s.st_size != (off_t)bytes; ++i) {
    usleep(10000);
    stat(other_name, &s);
  }
  need(s.st_size == (off_t)bytes, "the file is not written");
}

static void write_and_die(int fd) {
  write_through(fd);
  abort();
}

/* Counts how often the program hears that the file system is full. */
static void write_until_full(int fd) {
  int errors = 0;
  for (unsigned long o = 0; o < bytes; o += piece) {
    fill(o);
    if (write(fd, b, piece) < 0) errors += errno == ENOSPC;
  }
  if (fsync(fd) != 0) errors += errno == ENOSPC;
  printf("%d\n", errors);
}

/* Each record is read, changed and written in place; at the end all are read again. */
static void update(int fd) {
  for (unsigned long o = 0; o < bytes; o += piece) {
    read_there(fd, o, 0);
    for (unsigned long i = 0; i < piece; ++i) b[i] ^= 0x55;
    need(pwrite(fd, b, piece, (off_t)o) == (ssize_t)piece, "pwrite");
  }
  for (unsigned long o = 0; o < bytes; o += piece) read_there(fd, o, 0x55);
}

static const struct {
  const char *name;
  int flags;
  void (*run)(int fd);
} ways[] = {
    {"read", O_RDONLY, read_through},
    {"stride", O_RDONLY, read_strided},
    {"backward", O_RDONLY, read_backward},
    {"random", O_RDONLY, read_anywhere},
    {"write", O_WRONLY | O_CREAT | O_TRUNC, write_through},
    {"append", O_WRONLY | O_CREAT | O_APPEND, write_through},
    {"wait", O_WRONLY | O_CREAT | O_TRUNC, write_and_wait},
    {"die", O_WRONLY | O_CREAT | O_TRUNC, write_and_die},
    {"full", O_WRONLY | O_CREAT | O_TRUNC, write_until_full},
    {"update", O_RDWR, update},
};

int main(int argc, char **argv) {
  if (argc < 5) return 1;
  path = argv[2];
  bytes = strtoul(argv[3], 0, 10);
  piece = strtoul(argv[4], 0, 10);
  step = argc > 5 ? strtoul(argv[5], 0, 10) : piece;
  other_name = argc > 6 ? argv[6] : path;
  b = malloc(piece);
  for (unsigned i = 0; i < sizeof ways / sizeof *ways; ++i) {
    if (strcmp(argv[1], ways[i].name) != 0) continue;
    const int fd = open(path, ways[i].flags, 0644);
    need(fd >= 0, path);
    ways[i].run(fd);
    need(close(fd) == 0 || strcmp(argv[1], "full") == 0, "close");
    return 0;
  }
  return 1;
}
