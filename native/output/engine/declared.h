// SPDX-License-Identifier: Apache-2.0
// Whether a variable that is read is what the program has declared: in its units, and where its
// grid and axes are. Of the same number of points there may be any grid.
#pragma once

#include <string>

#include "output/format/format.h"
#include "output/format/reader.h"

namespace weir::output {

// A dimension is compared where the file has a coordinate variable of its name and the description
// has values; units where both have some. GRIB has neither: its reader compares headers.
// what: "o.nc: variable 'ta'", for messages.
// fails: WEIR_E_FORMAT, with the first place that differs
Status check_declared(Reader& reader, const FileDescription& description, int variable,
                      const Found& found, const std::string& what);

}  // namespace weir::output
