// SPDX-License-Identifier: Apache-2.0
// A field of which no edition has all levels. Archives have some levels in edition 1 and others in
// edition 2, and edition 1 has types of levels for hPa and for Pa: each level is looked for alone,
// and has to be in one edition.
#include <algorithm>

#include "output/format/grib/grid.h"
#include "output/format/grib/reader.h"
#include "output/model/text.h"

namespace weir::output::grib {
namespace {

// With one level (or member) of each axis: that of the given number, the last axis first.
FileDescription of_level(const FileDescription& description, const std::vector<int>& axes,
                         int64_t level) {
  FileDescription one = description;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    Dimension& dimension = one.dimensions[static_cast<size_t>(*axis)];
    const int64_t at = level % dimension.size;
    level /= dimension.size;
    dimension.size = 1;
    for (Variable& v : one.variables) {
      const bool bounds = v.name == dimension.name + "_bnds";
      if (v.values.empty() || !(v.name == dimension.name || bounds)) continue;
      const auto first = v.values.begin() + (bounds ? 2 * at : at);
      v.values = std::vector<double>(first, first + (bounds ? 2 : 1));
    }
  }
  return one;
}

std::string level_in_words(const FileDescription& one, const std::vector<int>& axes) {
  std::string text;
  for (const int axis : axes) {
    const Variable* values = one.coordinate_of(axis);
    text += (text.empty() ? "" : "/") + (values ? number_text(values->values[0]) : "?");
  }
  return text;
}

}  // namespace

Result<GribReader::Known> GribReader::find_by_level(const FileDescription& description,
                                                    int variable, const Status& otherwise) const {
  const Variable& v = description.variables[static_cast<size_t>(variable)];
  const std::string what = file_.path() + ": field " + quoted(v.name);
  const size_t vertical = horizontal_of(description, v).first;
  const std::vector<int> axes(v.dimensions.begin(),
                              v.dimensions.begin() + static_cast<std::ptrdiff_t>(vertical));
  int64_t levels = 1;
  for (const int axis : axes) levels *= description.dimensions[static_cast<size_t>(axis)].size;
  if (levels < 2) return otherwise;
  Known all;
  std::string places[3], twice;
  Status wrong;
  for (int64_t level = 0; level < levels; level++) {
    const FileDescription one = of_level(description, axes, level);
    const std::string words = level_in_words(one, axes);
    Result<Known> first = find_in_edition(one, variable, 1),
                  second = find_in_edition(one, variable, 2);
    if (first.ok() && second.ok()) twice = words;
    const int edition = first.ok() ? 1 : second.ok() ? 2 : 0;
    places[edition] += (places[edition].empty() ? "" : ", ") + words;
    if (edition == 0 && wrong.ok()) wrong = second.status();
    if (edition == 0) continue;
    Known& known = first.ok() ? *first : *second;
    if (all.levels.empty()) {
      all = std::move(known);
    } else {
      all.levels.push_back(std::move(known.levels[0]));
    }
  }
  const std::string has = what + " is in the file in edition 1 at the levels " + places[1] +
                          ", and in edition 2 at " + places[2];
  if (!wrong.ok()) {
    if (places[1].empty() || places[2].empty()) return otherwise;
    return Status(WEIR_E_FORMAT, has + ", and not at " + places[0] + ": " + wrong.message());
  }
  if (!twice.empty()) {
    return Status(WEIR_E_FORMAT, has + "; the level " + twice +
                                     " is in both; take it out of one of them (grib_copy -w)");
  }
  for (const std::vector<size_t>& level : all.levels) {
    if (level.size() == all.levels[0].size()) continue;
    return Status(WEIR_E_FORMAT, has + ", with " + std::to_string(all.levels[0].size()) + " and " +
                                     std::to_string(level.size()) +
                                     " messages a level; expected as many at each level");
  }
  WEIR_TRY(check_times(all, what));
  all.found.lengths.clear();
  for (const int dimension : v.dimensions)
    all.found.lengths.push_back(description.dimensions[static_cast<size_t>(dimension)].size);
  return all;
}

}  // namespace weir::output::grib
