// SPDX-License-Identifier: Apache-2.0
// An axis of levels as GRIB has them: their type, and the keys of each.
#pragma once

#include <string>
#include <vector>

#include "output/core/status.h"
#include "output/format/format.h"

namespace weir::output::grib {

struct Levels {
  std::string type;               // typeOfLevel
  std::vector<FormatKeys> levels;  // by value of the axis
};

// given: the key typeOfLevel, where there is one; else the axis' attributes say it.
// fails: WEIR_E_FORMAT, what the axis has and GRIB has not.
Result<Levels> levels_of(const FileDescription& description, const Variable& axis, int edition,
                         const FormatKey* given);

// What decides which coefficients (key pv) the levels of an axis have.
struct Vertical {
  bool of_model = false;   // levels of hybrid or other model coordinates
  bool is_hybrid = false;  // by CF's name of those that are nothing without coefficients
  double highest = 0;      // number of a level
};

Vertical vertical_of(const Variable& axis, const std::string& type);

struct Coefficients {
  const FormatKey* key;  // null: none
  int edition;
};

// "", or what is wrong with them.
std::string check_coefficients(const Vertical& vertical, const Coefficients& has);

}  // namespace weir::output::grib
