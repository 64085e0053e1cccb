// SPDX-License-Identifier: Apache-2.0
// A reader of Fortran namelists (ISO/IEC 1539-1:2018, 13.11): groups of names with lists of values.
// It knows repetition counts (3*60), null values (60,,30), quoted and unquoted text, logicals,
// comments, elements (history_interval(2) = 30) and several groups; it does not know derived types
// and array sections, which it reports when a group that is asked for has them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "output/core/status.h"

namespace weir::output {

struct NamelistValue {
  std::string text;    // without quotes, doubled quotes single
  bool quoted = false;
  int line = 0, column = 0;
};

struct NamelistEntry {
  std::string name;  // lower case
  std::map<int64_t, NamelistValue> values;  // by element, from 1; null values are not there
  int line = 0, column = 0;
};

struct NamelistGroup {
  std::string name;  // lower case
  std::vector<NamelistEntry> entries;
  int line = 0, column = 0;
};

// The groups of these names (lower case); others are passed over. Errors: "file:line:column: ...".
Result<std::vector<NamelistGroup>> read_namelist(const std::string& file, const std::string& text,
                                                 const std::vector<std::string>& groups);

}  // namespace weir::output
