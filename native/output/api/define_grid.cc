// SPDX-License-Identifier: Apache-2.0
#include "output/api/define.h"
#include "output/model/gaussian.h"
#include "output/model/text.h"

using namespace weir::api;
using weir::output::Grid;
using weir::output::GridKind;

namespace {

constexpr int64_t kMostCoordinates = int64_t{1} << 32;  // of one dimension, given as an array

Status make(weir_context* context, const char* name, Grid grid, weir_grid** out) {
  grid.name = name;
  return add(context, context->catalogue.grids, std::move(grid), context->grids, out,
             weir::output::check_grid);
}

Status copy(const char* what, int64_t size, const double* from, std::vector<double>* to) {
  if (!from) return is_null(what);
  if (size < 1 || size > kMostCoordinates)
    return {WEIR_E_ARGUMENT, std::string(what) + " of " + std::to_string(size) + " values"};
  to->assign(from, from + size);
  return {};
}

int rectangular(weir_context* context, GridKind kind, const char* call, const char* name,
                int64_t nx, const double* x, int64_t ny, const double* y, weir_grid** out,
                weir_error* err) {
  return define(context, call, err, [&]() -> Status {
    if (!name || !out) return is_null(name ? "grid" : "name");
    *out = nullptr;
    Grid grid;
    grid.kind = kind;
    grid.nx = nx;
    grid.ny = ny;
    const bool plane = kind == GridKind::kPlane;
    WEIR_TRY(copy(plane ? "x" : "lon", nx, x, &grid.x));
    WEIR_TRY(copy(plane ? "y" : "lat", ny, y, &grid.y));
    return make(context, name, std::move(grid), out);
  });
}

int without_coordinates(weir_context* context, GridKind kind, const char* call, const char* name,
                        int64_t nx, int64_t ny, weir_grid** out, weir_error* err) {
  return define(context, call, err, [&]() -> Status {
    if (!name || !out) return is_null(name ? "grid" : "name");
    Grid grid;
    grid.kind = kind;
    grid.nx = nx;
    grid.ny = ny;
    return make(context, name, std::move(grid), out);
  });
}

template <typename Set>
int set_mapping(weir_grid* grid, const char* call, weir_error* err, Set set_it) {
  if (!grid) return report(is_null("grid"), err);
  return define(grid->context, call, err, [&]() -> Status {
    return change(grid->context, grid->context->catalogue.grids[grid->index], set_it,
                  weir::output::check_grid);
  });
}

Status set_mapping_attribute(Grid& grid, const char* name,
                             decltype(weir::output::Attribute::value) value) {
  if (grid.mapping.name.empty()) {
    return {WEIR_E_ORDER,
            "grid " + weir::output::quoted(grid.name) +
                " has no grid mapping; call weir_grid_set_mapping before its attribute " +
                weir::output::quoted(name)};
  }
  set_attribute(grid.mapping.attributes, name, std::move(value));
  return {};
}

Status set_lonlat(weir_grid* handle, const weir_decomposition* decomposition, const double* lon,
                  const double* lat) {
  Grid& grid = handle->context->catalogue.grids[handle->index];
  const auto& part = handle->context->catalogue.decompositions[decomposition->index];
  const std::string what = "lon and lat of grid " + weir::output::quoted(grid.name);
  if (grid.kind != GridKind::kCurvilinear && grid.kind != GridKind::kUnstructured) {
    return {WEIR_E_ARGUMENT,
            what + ": the grid has its coordinates; expected a curvilinear or unstructured one"};
  }
  if (part.grid != handle->index)
    return {WEIR_E_ARGUMENT,
            what + ": decomposition " + weir::output::quoted(part.name) + " is of another grid"};
  const int64_t points = part.points();
  if (points > 0 && (!lon || !lat)) {
    return {WEIR_E_ARGUMENT, what + ": " + (lon ? "lat" : "lon") +
                                 " of a rank is null, or was refused there; expected " +
                                 std::to_string(points) + " values"};
  }
  for (int64_t i = 0; i < points; i++) {
    if (!(lat[i] >= -90.000001 && lat[i] <= 90.000001) || !(lon[i] >= -720 && lon[i] <= 720)) {
      return {WEIR_E_ARGUMENT, what + ": point " + std::to_string(i) + " of this rank is at lon " +
                                   weir::output::number_text(lon[i]) + ", lat " +
                                   weir::output::number_text(lat[i]) + "; expected degrees"};
    }
  }
  grid.lon.assign(lon, lon + points);
  grid.lat.assign(lat, lat + points);
  return {};
}

}  // namespace

int weir_grid_create_lonlat(weir_context* context, const char* name, int64_t nx, const double* lon,
                            int64_t ny, const double* lat, weir_grid** grid, weir_error* err) {
  return rectangular(context, GridKind::kLonLat, "weir_grid_create_lonlat", name, nx, lon, ny, lat,
                     grid, err);
}

int weir_grid_create_plane(weir_context* context, const char* name, int64_t nx, const double* x,
                           int64_t ny, const double* y, weir_grid** grid, weir_error* err) {
  return rectangular(context, GridKind::kPlane, "weir_grid_create_plane", name, nx, x, ny, y, grid,
                     err);
}

int weir_grid_create_gaussian(weir_context* context, const char* name, int64_t nx, int64_t ny,
                              weir_grid** grid, weir_error* err) {
  constexpr int64_t kMostLatitudes = 1 << 17;  // roots cost ny^2
  std::vector<double> lon, lat;
  if (nx > 0 && nx <= kMostCoordinates && ny > 0 && ny <= kMostLatitudes && ny % 2 == 0) {
    for (int64_t i = 0; i < nx; i++)
      lon.push_back(360.0 * static_cast<double>(i) / static_cast<double>(nx));
    lat = weir::output::gaussian_latitudes(ny);
    return rectangular(context, GridKind::kGaussian, "weir_grid_create_gaussian", name, nx,
                       lon.data(), ny, lat.data(), grid, err);
  }
  return define(context, "weir_grid_create_gaussian", err, [&]() -> Status {
    return {WEIR_E_ARGUMENT, "grid " + weir::output::quoted(name ? name : "") + ": " +
                                 std::to_string(nx) + " x " + std::to_string(ny) +
                                 " points; a Gaussian grid has an even number of latitudes (2 N), "
                                 "at most 131072, and at least one longitude"};
  });
}

int weir_grid_create_curvilinear(weir_context* context, const char* name, int64_t nx, int64_t ny,
                                 weir_grid** grid, weir_error* err) {
  return without_coordinates(context, GridKind::kCurvilinear, "weir_grid_create_curvilinear", name,
                             nx, ny, grid, err);
}

int weir_grid_create_unstructured(weir_context* context, const char* name, int64_t size,
                                  weir_grid** grid, weir_error* err) {
  return without_coordinates(context, GridKind::kUnstructured, "weir_grid_create_unstructured",
                             name, size, 1, grid, err);
}

int weir_grid_set_mapping(weir_grid* grid, const char* name, const char* grid_mapping_name,
                          weir_error* err) {
  return set_mapping(grid, "weir_grid_set_mapping", err, [&](Grid& mine) -> Status {
    if (!name || !grid_mapping_name) return is_null(name ? "grid_mapping_name" : "name");
    WEIR_TRY(weir::output::check_name("grid " + weir::output::quoted(mine.name) + ", grid mapping",
                                      name));
    mine.mapping = {name, {{"grid_mapping_name", grid_mapping_name}}};
    return {};
  });
}

int weir_grid_set_mapping_text(weir_grid* grid, const char* name, const char* value,
                               weir_error* err) {
  return set_mapping(grid, "weir_grid_set_mapping_text", err, [&](Grid& mine) -> Status {
    if (!name || !value) return is_null(name ? "value" : "name");
    return set_mapping_attribute(mine, name, std::string(value));
  });
}

int weir_grid_set_mapping_numbers(weir_grid* grid, const char* name, int count,
                                  const double* values, weir_error* err) {
  return set_mapping(grid, "weir_grid_set_mapping_numbers", err, [&](Grid& mine) -> Status {
    if (!name || !values) return is_null(name ? "values" : "name");
    constexpr int kMost = 64;
    if (count < 1 || count > kMost) {
      return {WEIR_E_ARGUMENT, "grid " + weir::output::quoted(mine.name) + ", attribute " +
                                   weir::output::quoted(name) + ": " + std::to_string(count) +
                                   " numbers; expected 1 to 64"};
    }
    if (count == 1) return set_mapping_attribute(mine, name, values[0]);
    return set_mapping_attribute(mine, name, std::vector<double>(values, values + count));
  });
}

int weir_grid_set_lonlat(weir_grid* grid, const weir_decomposition* decomposition,
                         const double* lon, const double* lat, weir_error* err) {
  if (!grid) return report(is_null("grid"), err);
  return define(grid->context, "weir_grid_set_lonlat", err, [&]() -> Status {
    if (!decomposition) return is_null("decomposition");
    WEIR_TRY(agreed(grid->context, set_lonlat(grid, decomposition, lon, lat)));
    grid->context->catalogue.grids[grid->index].lonlat_decomposition = decomposition->index;
    return {};
  });
}
