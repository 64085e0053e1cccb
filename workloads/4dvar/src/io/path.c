/* SPDX-License-Identifier: Apache-2.0
 * Names, directories and the pipe to the launcher: what Fortran has no statement for. Functions
 * with a result return 0 or a value that is not negative, or a negative errno. */
#include "sum.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int fdv_chdir(const char *name) { return chdir(name) ? -errno : 0; }

int fdv_mkdir(const char *name) { return mkdir(name, 0777) && errno != EEXIST ? -errno : 0; }

int fdv_rename(const char *from, const char *to) { return rename(from, to) ? -errno : 0; }

/* Replaces whatever link is there. */
int fdv_link(const char *target, const char *name) {
  if (unlink(name) && errno != ENOENT) return -errno;
  return symlink(target, name) ? -errno : 0;
}

int64_t fdv_size(const char *name) {
  struct stat status;
  return stat(name, &status) ? -(int64_t)errno : (int64_t)status.st_size;
}

/* Checksum of all bytes of a file, by mapping it: the record marks of Fortran units are seen by no
 * READ. */
int fdv_bytes_sum(const char *name, int64_t *value) {
  fdv_sum sum = {0};
  struct stat status;
  int fd = open(name, O_RDONLY), error = 0;
  if (fd < 0) return -errno;
  if (fstat(fd, &status)) {
    error = -errno;
  } else if (status.st_size > 0) {
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) {
      error = -errno;
    } else {
      fdv_sum_add(&sum, bytes, status.st_size);
      munmap(bytes, (size_t)status.st_size);
    }
  }
  close(fd);
  *value = fdv_sum_value(&sum);
  return error;
}

/* The name below the working directory of the file a link leads to, or the name itself. */
void fdv_resolve(const char *name, char *out, int out_bytes) {
  char real[PATH_MAX], here[PATH_MAX];
  const char *found = name;
  struct stat status;
  if (!lstat(name, &status) && S_ISLNK(status.st_mode) && realpath(name, real) &&
      realpath(".", here)) {
    size_t n = strlen(here);
    found = !strncmp(real, here, n) && real[n] == '/' ? real + n + 1 : real;
  }
  snprintf(out, (size_t)out_bytes, "%s", found);
}

/* A launcher that is notified of an abort drops what it has not read from its pipes: a message is
 * safe when the pipe is empty. */
void fdv_wait_for_launcher(void) {
  const struct timespec rest = {0, 1000000};
  struct stat is;
  if (fstat(STDERR_FILENO, &is) != 0 || !S_ISFIFO(is.st_mode)) return;
  for (int tries = 0, unread = 1; tries < 10000 && unread > 0; ++tries) {
    if (ioctl(STDERR_FILENO, FIONREAD, &unread) != 0) return;
    if (unread > 0) nanosleep(&rest, NULL);
  }
}

void fdv_error_text(int error, char *out, int out_bytes) {
  snprintf(out, (size_t)out_bytes, "%s", strerror(error < 0 ? -error : error));
}
