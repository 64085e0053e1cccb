/* SPDX-License-Identifier: Apache-2.0
 * An axis is a dimension of fields beside the horizontal and time: model levels, pressure, soil
 * layers, spectral bands. */
#ifndef WEIR_AXIS_H
#define WEIR_AXIS_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_axis weir_axis;

/* [collective] `size` values in `units` (null: "1"), monotonic, the same on all ranks; values null:
 * 1, 2, ..., size. */
WEIR_OUTPUT_API int weir_axis_create(weir_context *context, const char *name, int64_t size,
                                     const double *values, const char *units, weir_axis **axis,
                                     weir_error *err);

/* [collective] An attribute of the coordinate variable ("standard_name", "positive", "long_name",
 * "axis"). */
WEIR_OUTPUT_API int weir_axis_set_text(weir_axis *axis, const char *name, const char *value,
                                       weir_error *err);

/* [collective] Bounds of the cells: bounds[size][2]. */
WEIR_OUTPUT_API int weir_axis_set_bounds(weir_axis *axis, const double *bounds, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
