// SPDX-License-Identifier: Apache-2.0
// What a field looks for in a file.
#pragma once

#include "output/format/grib/reader.h"

namespace weir::output::grib {

// Scanning mode (flag table 3.4; of edition 1: 8).
constexpr int kWestward = 0x80, kUpward = 0x40, kByColumns = 0x20, kAlternating = 0x10;

struct GribReader::Wanted {
  Identity id;
  std::vector<std::pair<std::string, std::string>> where;  // keys of ecCodes and their values
  int64_t parameter = 0;  // as ecCodes numbers it; 0: not known
  // Whether the field says in which order its rows are; else they are as in the file.
  bool has_scanning = true;
};

}  // namespace weir::output::grib
