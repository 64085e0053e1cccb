/* SPDX-License-Identifier: Apache-2.0
 * Blocks through MPI-IO itself, at explicit offsets. */
#include "blocks.h"

static MPI_File file;
static int collective;

static const char *said(int code) {
  static char text[MPI_MAX_ERROR_STRING];
  int length;
  if (code == MPI_SUCCESS) return NULL;
  MPI_Error_string(code, text, &length);
  return text;
}

static const char *open_file(const struct blocks_options *o, int mode) {
  collective = o->collective;
  return said(MPI_File_open(MPI_COMM_WORLD, o->file, mode, o->hints, &file));
}

static const char *create(const struct blocks_options *o) {
  return open_file(o, MPI_MODE_CREATE | MPI_MODE_WRONLY);
}
static const char *open_again(const struct blocks_options *o) {
  return open_file(o, MPI_MODE_RDONLY);
}

static const char *write_words(int64_t first, int64_t count, const uint64_t *words) {
  return said((collective ? MPI_File_write_at_all : MPI_File_write_at)(
      file, first * 8, words, (int)count, MPI_UINT64_T, MPI_STATUS_IGNORE));
}

static const char *read_words(int64_t first, int64_t count, uint64_t *words) {
  return said((collective ? MPI_File_read_at_all : MPI_File_read_at)(
      file, first * 8, words, (int)count, MPI_UINT64_T, MPI_STATUS_IGNORE));
}

static const char *close_file(void) { return said(MPI_File_close(&file)); }

const struct blocks_api kBlocksMpiIo = {"mpiio",     create,     open_again,
                                        write_words, read_words, close_file};
