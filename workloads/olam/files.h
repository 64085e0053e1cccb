/* SPDX-License-Identifier: Apache-2.0
 * The files of the model: contents that anybody can compute, in requests of a fixed size. Each
 * procedure ends the job with a message where a call fails, and counts requests, bytes and seconds
 * in w. Words that are not what they must be count in w->wrong. */
#ifndef WEIR_OLAM_FILES_H
#define WEIR_OLAM_FILES_H

#include <stddef.h>

#include "workload.h"

/* bytes: a multiple of 8; request: likewise, at least 8. stream: number of the contents. */
struct model_file {
  char path[512];
  uint64_t stream;
  int64_t bytes, request;
};

/* Create or replace the file. */
void file_write(struct workload *w, const struct model_file *file);

/* Read the bytes from `first` to `end` in one pass. Compares the ends of each request, or with
 * `every` all words. */
void file_read(struct workload *w, const struct model_file *file, int64_t first, int64_t end,
               int every);

#endif
