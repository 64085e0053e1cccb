// SPDX-License-Identifier: Apache-2.0
// What must hold of definitions, beside the covering of grids (plan/). Checks of single things are
// made when they are defined; whole catalogues are checked at the end of definitions.
#pragma once

#include <string>
#include <vector>

#include "output/core/status.h"
#include "output/model/catalogue.h"

namespace weir::output {

// A name that netCDF takes and CF wants: a letter or underscore, then letters, digits, underscores;
// at most 255 bytes.
Status check_name(const std::string& what, const std::string& name);

Status check_grid(const Catalogue& catalogue, const Grid& grid);
Status check_axis(const Catalogue& catalogue, const Axis& axis);
// The rank's own part: within the grid, no negative counts.
Status check_decomposition(const Catalogue& catalogue, const Decomposition& decomposition);
Status check_field(const Catalogue& catalogue, const Field& field);
Status check_stream(const Catalogue& catalogue, const Stream& stream);
// The names of its files differ, as far as frequency, rotation and template say so: a name that
// comes twice later is reported at its step.
Status check_file_names(const Stream& stream, const std::string& calendar);
Status check_attribute(const std::string& owner, const Attribute& attribute);

// Indices within range, sizes that can be multiplied: what every user of a catalogue relies on.
Status check_structure(const Catalogue& catalogue);

// Everything. `warnings` gets what is legal but bad for readers (fields without units, a stream
// without fields).
Status check_catalogue(const Catalogue& catalogue, std::vector<std::string>* warnings);

// The names of grid mappings in an attribute grid_mapping: "crs", or "crs: x y other: lat lon".
std::vector<std::string> mappings_in(const std::string& attribute);

}  // namespace weir::output
