// SPDX-License-Identifier: Apache-2.0
// Axes of hybrid sigma-pressure levels (CF-1.11, section 4.3.3 and appendix D): p = ap + b ps. From
// the coefficients of all interfaces, the list pv of GRIB, come the variables that netCDF and Zarr
// have of them: hyam, hybm at full levels, hyai, hybi at interfaces, as in files of ECHAM and CDO.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "output/core/status.h"
#include "output/format/format.h"
#include "output/model/catalogue.h"

namespace weir::output {

struct Hybrid {
  std::vector<double> a, b;      // of all interfaces: Pa, 1
  std::vector<size_t> places;    // of each level: its interface, or the first one of its layer
  bool at_interfaces = false;
  bool is_numbered = false;      // the axis' values are numbers of layers or of interfaces
  std::string surface_pressure;  // "": the stream has none
  std::string suffix;            // of names, where the stream has several such axes
  bool has_interfaces = false;   // hyai and hybi are written beside the levels

  // Its layers follow one another, so that what bounds them is one list of interfaces.
  bool is_contiguous() const;
};

// Nothing: it is no such axis, or neither the axis, its fields nor the context have GRIB_pv.
// fails: WEIR_E_ARGUMENT  coefficients, levels or surface pressure do not fit
Result<std::optional<Hybrid>> hybrid_of(const Catalogue& catalogue, const Stream& stream, int axis);

// Attributes of the coordinate variable, and bounds where the program gives none.
void complete(const Hybrid& hybrid, Axis& axis);

// The formula of the axis or of its bounds; "" without surface pressure: an omitted term is zero,
// which this one is not.
std::string formula_terms(const Hybrid& hybrid, bool of_bounds);

// Behind the coordinate variable and its bounds. bounds: the dimension of these; -1: it has none.
void add_coefficients(const Hybrid& hybrid, int dimension, int bounds, FileDescription& file);

}  // namespace weir::output
