// SPDX-License-Identifier: Apache-2.0
// Every type in memory with every type in files and every form of a missing value, in two streams;
// missing.F90 and test_missing.py write the same files. A file that is there already is refused.
//     missing PREFIX
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/mpi.h>
#include <weir/weir.h>

enum { kPoints = 8, kSteps = 3, kTypes = 6, kForms = 4, kMissing = -99 };

static const char *const type_names[kTypes] = {"float32", "float64", "int32",
                                               "int64",   "int16",   "int8"};
static const char *const form_names[kForms] = {"number", "single", "whole", "integer"};
static weir_error err;

static void check(const char *call, int code) {
  if (code == WEIR_OK) return;
  printf("%s: %s: %s\n", call, weir_status_name(code), err.message);
  exit(1);
}
#define CALL(call, ...) check(#call, call(__VA_ARGS__, &err))

// Point 3 is missing at step 1, point 5 at steps 1 and 2, point 6 at step 0.
static double value(int point, int step) {
  return (point == 3 && step == 1) || (point == 5 && step > 0) || (point == 6 && step == 0)
             ? kMissing
             : point + 10 * step;
}

static void fill(int type, int step, void *data) {
  for (int i = 0; i < kPoints; i++) {
    double v = value(i, step);
    switch (type) {
      case WEIR_FLOAT32: ((float *)data)[i] = (float)v; break;
      case WEIR_FLOAT64: ((double *)data)[i] = v; break;
      case WEIR_INT32: ((int32_t *)data)[i] = (int32_t)v; break;
      case WEIR_INT64: ((int64_t *)data)[i] = (int64_t)v; break;
      case WEIR_INT16: ((int16_t *)data)[i] = (int16_t)v; break;
      case WEIR_INT8: ((int8_t *)data)[i] = (int8_t)v; break;
    }
  }
}

static weir_field *field(weir_decomposition *part, const char *name, int type, weir_stream *stream,
                         weir_stream *means) {
  weir_field *made;
  CALL(weir_field_create, part, name, (weir_type)type, 0, NULL, &made);
  CALL(weir_field_set_text, made, "units", "1");
  CALL(weir_stream_add_field, stream, made, WEIR_INSTANT);
  if (means) CALL(weir_stream_add_field, means, made, WEIR_MEAN);
  return made;
}

int main(int argc, char **argv) {
  MPI_Comm model;
  weir_context *context;
  weir_grid *grid;
  weir_decomposition *part;
  weir_stream *snapshots, *means;
  weir_field *fields[kTypes][kTypes][kForms], *edge[kTypes];
  const double x[] = {0, 1, 2, 3}, y[] = {0, 1};
  char path[256];
  int64_t data[kPoints];
  MPI_Init(&argc, &argv);
  CALL(weir_init, MPI_COMM_WORLD, "", &model, &context);
  CALL(weir_grid_create_plane, context, "plane", 4, x, 2, y, &grid);
  CALL(weir_grid_set_mapping, grid, "crs", "lambert_conformal_conic");
  CALL(weir_grid_set_mapping_numbers, grid, "standard_parallel", 2, (double[]){30, 60});
  CALL(weir_grid_set_mapping_numbers, grid, "earth_radius", 1, (double[]){6371229});
  CALL(weir_grid_set_mapping_numbers, grid, "longitude_of_central_meridian", 1, (double[]){-97.5});
  CALL(weir_grid_set_mapping_text, grid, "crs_wkt", "PROJCRS[]");
  CALL(weir_decomposition_create_block, grid, "all", 0, 4, 0, 2, &part);
  snprintf(path, sizeof path, "%s_%%Y%%m%%d.nc", argv[1]);
  CALL(weir_stream_create, context, "snapshots", path, NULL, &snapshots);
  CALL(weir_stream_set_every, snapshots, 43200);
  CALL(weir_stream_set_rotation, snapshots, 7);
  CALL(weir_stream_set_rotation_period, snapshots, "day");
  CALL(weir_stream_set_existing, snapshots, "refuse");
  snprintf(path, sizeof path, "%s_means.nc", argv[1]);
  CALL(weir_stream_create, context, "means", path, NULL, &means);
  CALL(weir_stream_set_every, means, 86400);
  for (int type = 0; type < kTypes; type++) {
    for (int in_files = 0; in_files < kTypes; in_files++) {
      for (int form = 0; form < kForms; form++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s_%s", type_names[type], type_names[in_files],
                 form_names[form]);
        weir_field *f = fields[type][in_files][form] = field(part, name, type, snapshots, means);
        CALL(weir_field_set_file_type, f, (weir_type)in_files);
        if (form < 2) CALL(weir_field_set_number, f, "missing_value", kMissing);
        else CALL(weir_field_set_missing_int64, f, kMissing);
      }
    }
    char name[64];
    snprintf(name, sizeof name, "%s_edge", type_names[type]);
    edge[type] = field(part, name, type, snapshots, NULL);
  }
  CALL(weir_field_set_number, edge[WEIR_FLOAT32], "missing_value", NAN);
  CALL(weir_field_set_number, edge[WEIR_FLOAT64], "missing_value", 1e300);
  CALL(weir_field_set_missing_int64, edge[WEIR_INT32], INT32_MIN);
  CALL(weir_field_set_missing_int64, edge[WEIR_INT64], INT64_MAX - 1);
  CALL(weir_field_set_number, edge[WEIR_INT16], "missing_value", INT16_MAX);
  CALL(weir_field_set_number, edge[WEIR_INT8], "missing_value", INT8_MIN);
  for (int step = 0; step < kSteps; step++) {
    CALL(weir_step, context, 43200.0 * step);
    for (int type = 0; type < kTypes; type++) {
      fill(type, step, data);
      for (int i = 0; i < kTypes * kForms; i++)
        CALL(weir_put, fields[type][i / kForms][i % kForms], data);
      CALL(weir_put, edge[type], data);
    }
    CALL(weir_end_step, context);
  }
  CALL(weir_finalize, &context);
  MPI_Finalize();
  return 0;
}
