/* SPDX-License-Identifier: Apache-2.0
 * A field is a quantity on a decomposed grid, with none, one or several axes. A rank's data are
 * [axis 1]...[axis n][points], the points as the decomposition has them (fastest), that is
 * Fortran's x(i, j, level). */
#ifndef WEIR_FIELD_H
#define WEIR_FIELD_H

#include "axis.h"
#include "decomposition.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_field weir_field;

typedef enum weir_type {
  WEIR_FLOAT32 = 0,
  WEIR_FLOAT64 = 1,
  WEIR_INT32 = 2,
  WEIR_INT64 = 3,
  WEIR_INT16 = 4,
  WEIR_INT8 = 5
} weir_type;

/* [collective] axes: `axis_count` of them, slowest first, at most 4; null for a horizontal field.
 */
WEIR_OUTPUT_API int weir_field_create(weir_decomposition *decomposition, const char *name,
                                      weir_type type, int axis_count, weir_axis *const *axes,
                                      weir_field **field, weir_error *err);

/* [collective] An attribute of the variable: "standard_name", "long_name", "units", "cell_methods",
 * ... */
WEIR_OUTPUT_API int weir_field_set_text(weir_field *field, const char *name, const char *value,
                                        weir_error *err);
/* [collective] A number: "missing_value" becomes the variable's _FillValue, in its type; others
 * become attributes. "scale_factor" and "add_offset" (CF, packed data) make integers of the
 * values: with them the type in files is WEIR_INT8, WEIR_INT16 or WEIR_INT32
 * (weir_field_set_file_type; checked at the end of definitions), readers get the values back
 * within half a scale_factor, the missing value is of the type in memory alone, and values beyond
 * the integers are WEIR_E_VALUE, as of any other type. Give them before the missing value.
 * fails: WEIR_E_ARGUMENT  the field's type in memory or in files cannot hold the missing value;
 *                         scale_factor 0 */
WEIR_OUTPUT_API int weir_field_set_number(weir_field *field, const char *name, double value,
                                          weir_error *err);
/* [collective] The missing value of a field of 64-bit integers, all of which a double cannot say.
 */
WEIR_OUTPUT_API int weir_field_set_missing_int64(weir_field *field, int64_t value, weir_error *err);
/* [collective] Type in files, when it is not the type in memory (float64 in memory, float32 in
 * files). */
WEIR_OUTPUT_API int weir_field_set_file_type(weir_field *field, weir_type type, weir_error *err);
/* [collective] Compression in formats that have it (docs/reference/formats.md): "none", "deflate:1"
 * to "deflate:9", "zstd:1" to "zstd:19". Streams of classic netCDF have the field without. The
 * configuration overrides it; to ask for it there in a classic format is a mistake. */
WEIR_OUTPUT_API int weir_field_set_compression(weir_field *field, const char *compression,
                                               weir_error *err);
/* [collective] Chunk in points and levels, as the file's dimensions without time have them:
 * chunk[axis_count + horizontal dimensions]. */
WEIR_OUTPUT_API int weir_field_set_chunk(weir_field *field, int count, const int64_t *chunk,
                                         weir_error *err);

/* Elements of this rank: points x the axes' sizes, without halo. */
WEIR_OUTPUT_API int64_t weir_field_local_size(const weir_field *field);

/* The shape of the arrays that weir_put and weir_get take on this rank, halo included: shape[] gets
 * [axis 1]...[axis n][rows][columns], or [axis 1]...[axis n][points] for unstructured grids and
 * lists of indices. Returns how many, at most 6; 0 when field is null. */
WEIR_OUTPUT_API int weir_field_array_shape(const weir_field *field, int64_t shape[6]);
/* The type of their elements. */
WEIR_OUTPUT_API weir_type weir_field_memory_type(const weir_field *field);

/* Queue this step's data for all streams that want them, and return before they are on disk.
 * before:  within a step; data has weir_field_local_size(field) elements (more with a halo). after:
 * data may be reused. fails: WEIR_E_ORDER outside of a step or put twice; WEIR_E_REMOTE an earlier
 * write failed; WEIR_E_LOST once for a step and stream that this rank cannot store: later puts do
 * nothing for it. cost: one copy for each stream due. Blocks while buffers are full (wait_s). */
WEIR_OUTPUT_API int weir_put(weir_field *field, const void *data, weir_error *err);

/* Lend the place where weir_put would copy to: *data has weir_field_local_size(field) elements, to
 * be filled by the model; weir_put(field, *data, ...) in the same step then copies nothing. *data
 * is null when no stream wants the field at this step, or the step is lost. fails: WEIR_E_ORDER the
 * decomposition has a halo, which the place has not (use weir_put alone, or a second decomposition
 * without a halo for such fields), or two streams want the field at this step (use weir_put alone);
 * WEIR_E_LOST as weir_put */
WEIR_OUTPUT_API int weir_field_lend(weir_field *field, void **data, weir_error *err);

/* [collective] Read the field's data of time record `record` (from 0; -1: the last) of the file
 * `path` into this rank's array. The file may have been written by any number of ranks, and by
 * other programs; values are converted to the field's type in memory. Bytes are read once per node
 * and scattered. Before or after the end of definitions.
 * fails: WEIR_E_FILE, WEIR_E_FORMAT (no such variable, other dimensions, a type with fractions for
 *   a field of integers), WEIR_E_VALUE (values that the type in memory cannot hold),
 *   WEIR_E_ARGUMENT (no such record; data null on a rank with points, which all ranks learn) */
WEIR_OUTPUT_API int weir_get(weir_field *field, const char *path, int64_t record, void *data,
                             weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
