/* SPDX-License-Identifier: Apache-2.0
 * A grid is the horizontal domain of fields: how many points, in which order in the file, and where
 * they are. Points are numbered from 0, the first dimension (x, longitude) fastest: index = j * nx
 * + i. Names must be valid netCDF names, unique in the context. */
#ifndef WEIR_GRID_H
#define WEIR_GRID_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_grid weir_grid;

/* [collective] Regular longitude-latitude: lon[nx] in degrees east, lat[ny] in degrees north,
 * monotonic, the same on all ranks. */
WEIR_OUTPUT_API int weir_grid_create_lonlat(weir_context *context, const char *name, int64_t nx,
                                            const double *lon, int64_t ny, const double *lat,
                                            weir_grid **grid, weir_error *err);

/* [collective] Regular Gaussian grid of ny = 2 N latitudes, north to south (roots of the Legendre
 * polynomial of degree ny), and nx longitudes from 0 east. */
WEIR_OUTPUT_API int weir_grid_create_gaussian(weir_context *context, const char *name, int64_t nx,
                                              int64_t ny, weir_grid **grid, weir_error *err);

/* [collective] A plane: x[nx], y[ny] in metres, the same on all ranks (beta planes, projections
 * without a mapping). */
WEIR_OUTPUT_API int weir_grid_create_plane(weir_context *context, const char *name, int64_t nx,
                                           const double *x, int64_t ny, const double *y,
                                           weir_grid **grid, weir_error *err);

/* [collective] Curvilinear: nx x ny points whose longitude and latitude are given by
 * weir_grid_set_lonlat. */
WEIR_OUTPUT_API int weir_grid_create_curvilinear(weir_context *context, const char *name,
                                                 int64_t nx, int64_t ny, weir_grid **grid,
                                                 weir_error *err);

/* [collective] Unstructured: `size` cells whose longitude and latitude are given by
 * weir_grid_set_lonlat. */
WEIR_OUTPUT_API int weir_grid_create_unstructured(weir_context *context, const char *name,
                                                  int64_t size, weir_grid **grid, weir_error *err);

/* [collective] The grid's mapping to the earth (CF-1.11, section 5.6 and appendix F): files with
 * fields of the grid have a scalar variable `name` with the attribute grid_mapping_name
 * ("lambert_conformal_conic"), and these fields the attribute grid_mapping = name, unless
 * weir_field_set_text has given them another. Grids may share a name if they have the same
 * attributes. x and y of a plane are then projection_x_coordinate and projection_y_coordinate in
 * metres; of "rotated_latitude_longitude" grid_longitude and grid_latitude in degrees. */
WEIR_OUTPUT_API int weir_grid_set_mapping(weir_grid *grid, const char *name,
                                          const char *grid_mapping_name, weir_error *err);

/* [collective] An attribute of the mapping ("crs_wkt"). fails: WEIR_E_ORDER before
 * weir_grid_set_mapping. */
WEIR_OUTPUT_API int weir_grid_set_mapping_text(weir_grid *grid, const char *name, const char *value,
                                               weir_error *err);

/* [collective] The same with 1 to 64 numbers ("standard_parallel" of a secant cone has two). */
WEIR_OUTPUT_API int weir_grid_set_mapping_numbers(weir_grid *grid, const char *name, int count,
                                                  const double *values, weir_error *err);

struct weir_decomposition;

/* [collective] Longitude and latitude (degrees) of this rank's points of a curvilinear or
 * unstructured grid, in the order of the decomposition, without halo. Null on a rank with points is
 * an error on all ranks. Without them the file has no coordinates for the grid, and says nothing
 * false. */
WEIR_OUTPUT_API int weir_grid_set_lonlat(weir_grid *grid,
                                         const struct weir_decomposition *decomposition,
                                         const double *lon, const double *lat, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
