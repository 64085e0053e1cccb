/* SPDX-License-Identifier: Apache-2.0
 * The floor: each rank writes an equal part of the frame's bytes, from a buffer that it has, 4 MiB
 * at a time, with nothing to gather or to put in order. With sync, each file is on the disk before
 * the next. One rank of it is what one server could do at best. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiment.h"
#include "plain.h"

static char *buffer;

static void define(struct run *run) {
  (void)run;
  buffer = malloc(PIECE);
  if (buffer == NULL) fail("memory", "refused");
  memset(buffer, 7, PIECE);
}

static void write_domain(struct run *run, int d, int frame) {
  char path[MAX_PATH];
  long first, count;
  plain_share(run, d, &first, &count);
  frame_path(&run->options, kWriter.name, d, frame, path);
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) fail(path, "cannot be created");
  while (count > 0) {
    for (long at = 0; at < PIECE; at += STAMPED) {
      const long place = first + at;
      memcpy(buffer + at, &place, sizeof place);
    }
    const ssize_t wrote = pwrite(file, buffer, count < PIECE ? (size_t)count : PIECE, first);
    if (wrote <= 0) fail(path, "cannot be written");
    first += wrote, count -= wrote;
  }
  if (run->options.sync && fsync(file)) fail(path, "cannot be synchronised");
  if (close(file)) fail(path, "cannot be closed");
}

const struct writer kWriter = {.name = "plain", .define = define, .write_domain = write_domain};
