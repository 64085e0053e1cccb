/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int file_open(struct workload *w, const struct model_file *file, int flags) {
  const double begun = workload_clock();
  const int fd = open(file->path, flags, 0644);
  w->io_wait_s += workload_clock() - begun;
  if (fd < 0) workload_fail(w, file->path, strerror(errno));
  return fd;
}

static void file_close(struct workload *w, const struct model_file *file, int fd) {
  const double begun = workload_clock();
  const int status = close(fd);
  w->io_wait_s += workload_clock() - begun;
  if (status != 0) workload_fail(w, file->path, strerror(errno));
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* One request, which a file system may take in parts. */
static void move(struct workload *w, const struct model_file *file, int fd, char *buffer,
                 int64_t size, int writes) {
  const double begun = workload_clock();
  for (int64_t done = 0; done < size;) {
    const size_t left = (size_t)(size - done);
    const ssize_t moved = writes ? write(fd, buffer + done, left) : read(fd, buffer + done, left);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) workload_fail(w, file->path, strerror(errno));
    if (moved == 0)
      workload_fail(w, file->path, "is too short; give --setup the same sizes as the run");
    done += moved;
  }
  w->io_wait_s += workload_clock() - begun;
  w->requests++, w->bytes += (uint64_t)size;
}

void file_write(struct workload *w, const struct model_file *file) {
  uint64_t *words = malloc((size_t)file->request);
  if (!words) workload_fail(w, file->path, "no memory for a request");
  const int fd = file_open(w, file, O_WRONLY | O_CREAT | O_TRUNC);
  for (int64_t at = 0; at < file->bytes; at += file->request) {
    const int64_t size = smaller(file->request, file->bytes - at);
    for (int64_t i = 0; i < size / 8; ++i)
      words[i] = workload_word(file->stream, (uint64_t)(at / 8 + i));
    move(w, file, fd, (char *)words, size, 1);
  }
  file_close(w, file, fd);
  free(words);
}

void file_read(struct workload *w, const struct model_file *file, int64_t first, int64_t end,
               int every) {
  uint64_t *words = malloc((size_t)file->request);
  if (!words) workload_fail(w, file->path, "no memory for a request");
  const int fd = file_open(w, file, O_RDONLY);
  if (lseek(fd, first, SEEK_SET) < 0) workload_fail(w, file->path, strerror(errno));
  for (int64_t at = first; at < end; at += file->request) {
    const int64_t size = smaller(file->request, end - at), last = size / 8 - 1;
    move(w, file, fd, (char *)words, size, 0);
    for (int64_t i = 0; i <= last; i += every || last == 0 ? 1 : last)
      w->wrong += words[i] != workload_word(file->stream, (uint64_t)(at / 8 + i));
  }
  file_close(w, file, fd);
  free(words);
}
