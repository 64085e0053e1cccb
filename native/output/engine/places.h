// SPDX-License-Identifier: Apache-2.0
// Longitude and latitude of each point, of grids that are curvilinear or unstructured: whether
// those of a file are the ones that the program has declared (weir_grid_set_lonlat).
#pragma once

#include <string>
#include <vector>

#include "output/format/reader.h"
#include "output/model/catalogue.h"
#include "output/model/packing.h"

namespace weir::output {

// A variable of a file that the attribute `coordinates` of another one names. Plain bytes: rank 0
// sends it to all.
struct PlaceVariable {
  char name[256] = {};
  bool is_longitude = false, is_radian = false;
  Type type = WEIR_FLOAT64;
  int64_t record = 0;  // where it is over time, as in files of WRF
  double scale = 1, offset = 0;
  Fills fills = {};
};

// Those of `found` that are longitudes or latitudes by units or standard name (CF, 4.1 and 4.2),
// of as many points as the grid. Empty: it has none, or the program has none for this grid.
// record: the one of `found` that is read
std::vector<PlaceVariable> places_of(Reader& reader, const Found& found, const Grid& grid,
                                     int64_t record);

// Points of one rank: "" or what differs. Where the file has its fill value there is no point (land
// in files of NEMO); at a pole any longitude is the same.
// values: degrees or radians, as in the file
std::string places_differ(const PlaceVariable& place, std::vector<double> values, const Grid& grid);

}  // namespace weir::output
