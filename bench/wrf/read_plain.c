/* SPDX-License-Identifier: Apache-2.0
 * The floor of input: each rank reads the part that it has written with write_plain.c, 4 MiB at a
 * time, and compares the place that every MiB of it states. */
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
}

static void read_domain(struct run *run, int d, int frame) {
  char path[MAX_PATH];
  long first, count;
  plain_share(run, d, &first, &count);
  frame_path(&run->options, "plain", d, frame, path);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(path, "cannot be opened");
  while (count > 0) {
    const long piece = count < PIECE ? count : PIECE;
    for (long got = 0; got < piece;) {
      const ssize_t n = pread(file, buffer + got, (size_t)(piece - got), first + got);
      if (n <= 0) fail(path, "cannot be read");
      got += n;
    }
    for (long at = 0; at + (long)sizeof first <= piece; at += STAMPED) {
      const long expected = first + at;
      if (memcmp(buffer + at, &expected, sizeof expected) != 0) fail(path, "has other contents");
    }
    first += piece, count -= piece;
  }
  if (close(file)) fail(path, "cannot be closed");
}

const struct writer kWriter = {.name = "read", .define = define, .write_domain = read_domain};
