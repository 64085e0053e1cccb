// SPDX-License-Identifier: Apache-2.0
// From a stream of a catalogue to the file that CF-1.11 wants: names of dimensions, coordinate
// variables with their attributes, bounds, cell methods, fill values. Formats only encode what is
// said here, so the same stream has the same metadata in each of them, and nothing in it depends on
// the run (mode, ranks, clock), so that files of two modes can be compared byte by byte.
//
// Names: with one grid in the stream its dimensions are lon and lat (longitude-latitude and
// Gaussian), x and y (planes, curvilinear) or cell (unstructured); with several, each has the
// grid's name appended (lon_ocean). An axis has its own name. Variables stand in this order:
// coordinates and their bounds, time, time_bnds, lon and lat of curvilinear and unstructured grids,
// grid mappings, the fields in the stream's order.
#pragma once

#include <vector>

#include "output/core/status.h"
#include "output/format/format.h"
#include "output/model/catalogue.h"

namespace weir::output {

// Longitude and latitude that ranks hold in parts: two variables without time, written once in each
// file by the engine, float64.
struct LonLat {
  int grid = -1, decomposition = -1;
  int lon = -1, lat = -1;  // indices of variables
};

struct StreamFile {
  FileDescription file;
  std::vector<int> fields;  // index of the variable of each field of the stream
  int time = -1;            // a float64 with each record: seconds since the reference
  int time_bounds = -1;     // two float64 with each record, begin and end of the interval; -1: the
                            // stream does not reduce
  std::vector<LonLat> lonlat;
};

// fails: WEIR_E_ARGUMENT two things of the stream would have the same name in the file.
Result<StreamFile> describe(const Catalogue& catalogue, const Stream& stream);

// The same with this field alone, for reading: with the keys that the first stream of the field has
// for its format, if any has.
Result<StreamFile> describe_field(const Catalogue& catalogue, int field);

// What keeps the stream's format from writing it: types, sizes and names that the format has not.
// Of a stream without fields: nothing. The catalogue's structure is fine (check_structure).
Status check_format(const Catalogue& catalogue, const Stream& stream);

}  // namespace weir::output
