/* SPDX-License-Identifier: Apache-2.0
 * All ranks write one file and read it back as IOR does: `segments` times a block of each rank,
 * moved in transfers. The file is an array of 64-bit words, for MPI-IO nothing else, for HDF5,
 * netCDF-4 and PnetCDF one variable. With --shift ranks read what others have written. */
#include "blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

static const char *file = "blocks.dat", *api_name = "mpiio", *hint = "";
static int64_t transfer = 256 << 10, block = 1 << 20, segments = 4, shift = 1;
static int collective = 0, no_read = 0;

static const struct workload_option kOptions[] = {
    {"api", 's', &api_name, "the library: " BLOCKS_APIS " (mpiio)"},
    {"file", 's', &file, "the file (blocks.dat)"},
    {"transfer", 'i', &transfer, "bytes of a call (262144)"},
    {"block", 'i', &block, "bytes of a rank in a segment (1048576)"},
    {"segments", 'i', &segments, "blocks of each rank (4)"},
    {"collective", 'f', &collective, "each transfer is a call of all ranks"},
    {"shift", 'i', &shift, "each rank reads the blocks of the rank so many behind it (1)"},
    {"no-read", 'f', &no_read, "only write"},
    {"hint", 's', &hint, "KEY=VALUE for MPI_File_open"},
    {0}};

static const struct blocks_api *const kApis[] = {
    &kBlocksMpiIo,
#ifdef BLOCKS_HDF5
    &kBlocksHdf5,
#endif
#ifdef BLOCKS_NETCDF
    &kBlocksNetcdf4,
#endif
#ifdef BLOCKS_PNETCDF
    &kBlocksPnetcdf,
#endif
};

static const struct blocks_api *find_api(const struct workload *w) {
  for (size_t i = 0; i < sizeof kApis / sizeof kApis[0]; ++i) {
    if (strcmp(kApis[i]->name, api_name) == 0) return kApis[i];
  }
  workload_fail(w, api_name, "--api of this program is one of " BLOCKS_APIS);
}

static MPI_Info hints(const struct workload *w) {
  if (*hint == '\0') return MPI_INFO_NULL;
  static char text[256];
  MPI_Info info;
  snprintf(text, sizeof text, "%s", hint);
  char *equals = strchr(text, '=');
  if (equals == NULL) workload_fail(w, hint, "--hint is KEY=VALUE");
  *equals = '\0';
  MPI_Info_create(&info);
  MPI_Info_set(info, text, equals + 1);
  return info;
}

/* One library call: its time, and the end of the job when it fails. */
#define TIMED(w, call)                                   \
  do {                                                   \
    const double begun = workload_clock();               \
    const char *failure = (call);                        \
    (w)->io_wait_s += workload_clock() - begun;          \
    if (failure != NULL) workload_fail(w, file, failure); \
  } while (0)

/* First word of a transfer of the rank. */
static int64_t place(const struct workload *w, int64_t segment, int rank, int64_t at) {
  return ((segment * w->ranks + rank) * block + at) / 8;
}

static void write_all(struct workload *w, const struct blocks_api *api, uint64_t *words) {
  for (int64_t s = 0; s < segments; ++s) {
    for (int64_t at = 0; at < block; at += transfer) {
      const int64_t first = place(w, s, w->rank, at);
      for (int64_t i = 0; i < transfer / 8; ++i) words[i] = workload_word(5, (uint64_t)(first + i));
      TIMED(w, api->write(first, transfer / 8, words));
      w->requests++, w->bytes += (uint64_t)transfer;
    }
  }
}

static void read_all(struct workload *w, const struct blocks_api *api, uint64_t *words) {
  const int of = (int)((w->rank + shift) % w->ranks);
  for (int64_t s = 0; s < segments; ++s) {
    for (int64_t at = 0; at < block; at += transfer) {
      const int64_t first = place(w, s, of, at);
      memset(words, 0, (size_t)transfer);
      TIMED(w, api->read(first, transfer / 8, words));
      w->requests++, w->bytes += (uint64_t)transfer;
      for (int64_t i = 0; i < transfer / 8; ++i)
        w->wrong += words[i] != workload_word(5, (uint64_t)(first + i));
    }
  }
}

int main(int argc, char **argv) {
  struct workload w;
  workload_begin(&w, "blocks", &argc, &argv, kOptions);
  const struct blocks_api *const api = find_api(&w);
  if (transfer < 8 || transfer % 8 || block < transfer || block % transfer || transfer > 1 << 30 ||
      segments < 1 || shift < 0) {
    workload_fail(&w, file,
                  "--transfer is a multiple of 8 bytes up to 1 GiB, --block one of --transfer, "
                  "--segments at least 1");
  }
  const struct blocks_options options = {file, w.ranks * segments * block / 8, collective,
                                         hints(&w)};
  uint64_t *const words = malloc((size_t)transfer);
  if (words == NULL) workload_fail(&w, file, "no memory for a transfer");
  workload_start(&w);
  TIMED(&w, api->create(&options));
  write_all(&w, api, words);
  TIMED(&w, api->close());
  if (!no_read) {
    TIMED(&w, api->open(&options));
    read_all(&w, api, words);
    TIMED(&w, api->close());
  }
  workload_stop(&w);
  free(words);
  return workload_end(&w);
}
