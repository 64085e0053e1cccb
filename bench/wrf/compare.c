/* SPDX-License-Identifier: Apache-2.0
 * compare WRITER OTHER key=value...: whether the files of two writers of the same experiment hold
 * the same values, and the right ones. Any format that netCDF-C reads; variables are found by their
 * names, with which libweir's begin. Status 1 and a message when not. */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"

static void must(int code, const char *what) {
  if (code != NC_NOERR) fail(what, nc_strerror(code));
}

static int variable_of(int file, const char *name, int domain, const char *path) {
  char longer[64];
  int variable;
  if (nc_inq_varid(file, name, &variable) == NC_NOERR) return variable;
  snprintf(longer, sizeof longer, "%s_d%02d", name, domain + 1);
  must(nc_inq_varid(file, longer, &variable), path);
  return variable;
}

static void read_level(int file, int domain, int f, long level, long ny, long nx, float *to,
                       const char *path) {
  const int deep = kFields[f].levels > 1;
  const size_t first[4] = {0, (size_t)level, 0, 0}, count[4] = {1, 1, (size_t)ny, (size_t)nx};
  const size_t flat_first[3] = {0, 0, 0};
  must(nc_get_vara_float(file, variable_of(file, kFields[f].name, domain, path),
                         deep ? first : flat_first, deep ? count : count + 1, to),
       path);
}

static long compare_frame(const struct options *options, const char *writers[2], int d, int frame) {
  char paths[2][MAX_PATH];
  int files[2];
  long nx, ny, compared = 0;
  domain_sizes(options, d, &nx, &ny);
  float *values[2] = {malloc(sizeof(float) * (size_t)(nx * ny)),
                      malloc(sizeof(float) * (size_t)(nx * ny))};
  if (values[0] == NULL || values[1] == NULL) fail("memory", "refused");
  for (int w = 0; w < 2; w++) {
    frame_path(options, writers[w], d, frame, paths[w]);
    must(nc_open(paths[w], NC_NOWRITE, &files[w]), paths[w]);
  }
  for (int f = 0; f < FIELDS; f++)
    for (long level = 0; level < kFields[f].levels; level++) {
      for (int w = 0; w < 2; w++) read_level(files[w], d, f, level, ny, nx, values[w], paths[w]);
      for (long k = 0; k < nx * ny; k++, compared++) {
        const float expected = value_at(d, f, level, k / nx, k % nx, frame);
        if (values[0][k] == expected && values[1][k] == expected) continue;
        fprintf(stderr, "error: %s of %s and %s: level %ld, j %ld, i %ld: %g and %g, expected %g\n",
                kFields[f].name, paths[0], paths[1], level, k / nx, k % nx, (double)values[0][k],
                (double)values[1][k], (double)expected);
        exit(1);
      }
    }
  for (int w = 0; w < 2; w++) must(nc_close(files[w]), paths[w]), free(values[w]);
  return compared;
}

int main(int argc, char **argv) {
  struct options options;
  long compared = 0;
  MPI_Init(&argc, &argv);
  if (argc < 3) fail("usage", "compare WRITER OTHER key=value...");
  const char *writers[2] = {argv[1], argv[2]};
  read_options(argc - 2, argv + 2, &options);
  for (int d = 0; d < DOMAINS; d++)
    for (int frame = 0; frame <= (int)((options.steps - 1) / options.every); frame++)
      compared += compare_frame(&options, writers, d, frame);
  printf("wrf: compared=%ld\n", compared);
  return MPI_Finalize() != MPI_SUCCESS;
}
