/* SPDX-License-Identifier: Apache-2.0
 * A decomposition says which points of a grid a rank has, and in which order they lie in the rank's
 * memory. All ranks together must cover the grid exactly once; weir_context_end_definition checks
 * it and names missing and doubled points. */
#ifndef WEIR_DECOMPOSITION_H
#define WEIR_DECOMPOSITION_H

#include "grid.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_decomposition weir_decomposition;

/* [collective] A block: columns i0 <= i < i0 + ni, rows j0 <= j < j0 + nj (from 0), i fastest in
 * memory. ni or nj 0: no points here. */
WEIR_OUTPUT_API int weir_decomposition_create_block(weir_grid *grid, const char *name, int64_t i0,
                                                    int64_t ni, int64_t j0, int64_t nj,
                                                    weir_decomposition **decomposition,
                                                    weir_error *err);

/* [collective] Any list of `count` global indices (from 0), in the order in which the rank's memory
 * has them. The list is copied. */
WEIR_OUTPUT_API int weir_decomposition_create_indices(weir_grid *grid, const char *name,
                                                      int64_t count, const int64_t *indices,
                                                      weir_decomposition **decomposition,
                                                      weir_error *err);

/* Arrays given to weir_put and weir_get have a halo around the block: `west` and `east` further
 * columns, `south` rows before and `north` rows after. It is skipped by put and left alone by get.
 * Blocks only. */
WEIR_OUTPUT_API int weir_decomposition_set_halo(weir_decomposition *decomposition, int64_t west,
                                                int64_t east, int64_t south, int64_t north,
                                                weir_error *err);

/* Points of this rank, without halo. */
WEIR_OUTPUT_API int64_t weir_decomposition_local_size(const weir_decomposition *decomposition);

#ifdef __cplusplus
}
#endif
#endif
