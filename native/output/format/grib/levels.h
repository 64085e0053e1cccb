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

}  // namespace weir::output::grib
