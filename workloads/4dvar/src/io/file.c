/* SPDX-License-Identifier: Apache-2.0 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fdv_file {
  FILE *stream;
  int fd, writing;
  int64_t block_bytes, held_bytes;
  char *held; /* what a POSIX file has collected and not yet written */
  fdv_sum sum;
};

static int opened(fdv_file *file, const char *name, int kind) {
  if (kind == FDV_STDIO) {
    file->stream = fopen(name, file->writing ? "wb" : "rb");
    return file->stream != NULL;
  }
  file->fd = file->writing ? open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666) : open(name, O_RDONLY);
  if (file->fd < 0) return 0;
  if (file->writing) file->held = malloc((size_t)file->block_bytes);
  return !file->writing || file->held != NULL;
}

fdv_file *fdv_file_open(const char *name, int kind, int writing, int64_t block_bytes, int *error) {
  fdv_file *file = calloc(1, sizeof *file);
  *error = 0;
  if (file) {
    file->fd = -1;
    file->writing = writing;
    file->block_bytes = block_bytes;
    if (opened(file, name, kind)) return file;
  }
  *error = errno;
  free(file);
  return NULL;
}

static int64_t read_request(fdv_file *file, char *data, int64_t bytes) {
  if (file->stream) {
    size_t n = fread(data, 1, (size_t)bytes, file->stream);
    return n == 0 && ferror(file->stream) ? -errno : (int64_t)n;
  }
  ssize_t n;
  do n = read(file->fd, data, (size_t)bytes);
  while (n < 0 && errno == EINTR);
  return n < 0 ? -errno : n;
}

int64_t fdv_file_read(fdv_file *file, void *data, int64_t bytes) {
  int64_t done = 0;
  while (done < bytes) {
    int64_t ask = bytes - done < file->block_bytes ? bytes - done : file->block_bytes;
    int64_t n = read_request(file, (char *)data + done, ask);
    if (n < 0) return n;
    if (n == 0) break;
    done += n;
  }
  fdv_sum_add(&file->sum, data, done);
  return done;
}

static int flushed(fdv_file *file) {
  int64_t done = 0;
  while (done < file->held_bytes) {
    ssize_t n = write(file->fd, file->held + done, (size_t)(file->held_bytes - done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -errno;
    done += n;
  }
  file->held_bytes = 0;
  return 0;
}

static int64_t collected(fdv_file *file, const char *data, int64_t bytes) {
  for (int64_t done = 0; done < bytes;) {
    int64_t room = file->block_bytes - file->held_bytes,
            n = bytes - done < room ? bytes - done : room;
    memcpy(file->held + file->held_bytes, data + done, (size_t)n);
    file->held_bytes += n;
    done += n;
    int error = file->held_bytes == file->block_bytes ? flushed(file) : 0;
    if (error) return error;
  }
  return bytes;
}

int64_t fdv_file_write(fdv_file *file, const void *data, int64_t bytes) {
  fdv_sum_add(&file->sum, data, bytes);
  if (!file->stream) return collected(file, data, bytes);
  for (int64_t done = 0; done < bytes;) {
    int64_t ask = bytes - done < file->block_bytes ? bytes - done : file->block_bytes;
    if (fwrite((const char *)data + done, 1, (size_t)ask, file->stream) != (size_t)ask)
      return -errno;
    done += ask;
  }
  return bytes;
}

int fdv_file_close(fdv_file *file, fdv_sum *sum) {
  int error = 0;
  if (file->stream) {
    if (fclose(file->stream)) error = -errno;
  } else {
    error = file->writing ? flushed(file) : 0;
    if (close(file->fd) && !error) error = -errno;
  }
  *sum = file->sum;
  free(file->held);
  free(file);
  return error;
}
