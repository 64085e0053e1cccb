/* SPDX-License-Identifier: Apache-2.0
 * GRIB through ecCodes: messages of a file one after the other, and messages made from ecCodes'
 * samples. Errors are ecCodes' own (negative), put in words by fdv_grib_error; 0 is success. */
#include "sum.h"

#include <eccodes.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  FILE *stream;
  codes_handle *message;
  fdv_sum sum;
} fdv_grib;

fdv_grib *fdv_grib_open(const char *name, int *error) {
  fdv_grib *grib = calloc(1, sizeof *grib);
  *error = 0;
  if (grib && (grib->stream = fopen(name, "rb"))) return grib;
  *error = errno;
  free(grib);
  return NULL;
}

/* All parameters here are of ECMWF's table 128, where edition 1 has the number itself in its
 * header. Asking edition 1 for paramId would make ecCodes read its concept files, 400,000 requests
 * of one byte, for the same answer. */
static const char *parameter_key(const codes_handle *message) {
  long edition = 0;
  codes_get_long(message, "edition", &edition);
  return edition == 1 ? "indicatorOfParameter" : "paramId";
}

/* The next message: its parameter, level and number of values; *values is 0 at the end of the file.
 */
int fdv_grib_next(fdv_grib *grib, int *param, int *level, int *values) {
  int error = 0;
  const void *bytes;
  size_t length, n;
  long p, l;
  *values = 0;
  if (grib->message) codes_handle_delete(grib->message);
  grib->message = codes_grib_handle_new_from_file(NULL, grib->stream, &error);
  if (!grib->message || error) return error;
  if ((error = codes_get_message(grib->message, &bytes, &length))) return error;
  fdv_sum_add(&grib->sum, bytes, (int64_t)length);
  if ((error = codes_get_long(grib->message, parameter_key(grib->message), &p)) ||
      (error = codes_get_long(grib->message, "level", &l)) ||
      (error = codes_get_size(grib->message, "values", &n)))
    return error;
  *param = (int)p;
  *level = (int)l;
  *values = (int)n;
  return 0;
}

int fdv_grib_values(fdv_grib *grib, double *values, int count) {
  size_t n = (size_t)count;
  return codes_get_double_array(grib->message, "values", values, &n);
}

int64_t fdv_grib_close(fdv_grib *grib, fdv_sum *sum) {
  if (grib->message) codes_handle_delete(grib->message);
  fclose(grib->stream);
  *sum = grib->sum;
  free(grib);
  return sum->bytes;
}

/* A message to be filled, spectral (truncation > 0) or on a reduced Gaussian grid. NULL: no such
 * sample. */
void *fdv_grib_sample(int edition, int truncation, int grid, int *values) {
  char name[64];
  long n = 0;
  int error = 0;
  if (truncation > 0)
    snprintf(name, sizeof name, "sh_ml_grib%d", edition);
  else
    snprintf(name, sizeof name, "reduced_gg_pl_%d_grib%d", grid, edition);
  codes_handle *message = codes_grib_handle_new_from_samples(NULL, name);
  if (!message) return NULL;
  if (truncation > 0) {
    const char *keys[] = {"J", "K", "M"};
    for (int i = 0; i < 3 && !error; i++) error = codes_set_long(message, keys[i], truncation);
    n = (long)(truncation + 1) * (truncation + 2);
  } else {
    size_t length = 6;
    error = codes_get_long(message, "numberOfDataPoints", &n);
    if (edition == 1) {
      if (!error) error = codes_set_long(message, "indicatorOfTypeOfLevel", 109);
      if (!error) error = codes_set_long(message, "table2Version", 128);
    } else if (!error) {
      error = codes_set_string(message, "typeOfLevel", "hybrid", &length);
    }
    if (!error) error = codes_set_long(message, "bitsPerValue", 16);
  }
  if (error) {
    codes_handle_delete(message);
    return NULL;
  }
  *values = (int)n;
  return message;
}

/* Encodes; the bytes belong to the message and are valid until the next call. */
int fdv_grib_encode(void *message, int param, int level, const double *values, int count,
                    const void **bytes, int64_t *length) {
  size_t n = 0;
  int error = codes_set_long(message, parameter_key(message), param);
  if (!error) error = codes_set_long(message, "level", level);
  if (!error) error = codes_set_double_array(message, "values", values, (size_t)count);
  if (!error) error = codes_get_message(message, bytes, &n);
  *length = (int64_t)n;
  return error;
}

void fdv_grib_delete(void *message) { codes_handle_delete(message); }

void fdv_grib_error(int error, char *out, int out_bytes) {
  snprintf(out, (size_t)out_bytes, "%s", codes_get_error_message(error));
}
