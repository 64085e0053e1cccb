// SPDX-License-Identifier: Apache-2.0
// Single things: names, attributes, grids, axes, decompositions.
#include "output/model/check.h"

#include <algorithm>
#include <cmath>

#include "output/model/text.h"

namespace weir::output {
namespace {

constexpr size_t kLongestName = 255;
constexpr size_t kLongestText = 1 << 20;
constexpr int64_t kMostPoints = int64_t{1} << 56;  // times eight bytes still a 64-bit count

Status wrong(const std::string& what, const std::string& why) {
  return {WEIR_E_ARGUMENT, what + ": " + why};
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// 1: strictly increasing, -1: strictly decreasing, 0: neither, or not finite.
int direction(const std::vector<double>& values) {
  int way = values.size() < 2 ? 1 : values[1] > values[0] ? 1 : -1;
  for (size_t i = 0; i < values.size(); i++) {
    if (!std::isfinite(values[i]) || (i > 0 && !(way * values[i] > way * values[i - 1]))) return 0;
  }
  return way;
}

Status check_coordinate(const std::string& what, const std::string& name,
                        const std::vector<double>& values, int64_t size) {
  if (static_cast<int64_t>(values.size()) != size) {
    return wrong(what, name + " has " + std::to_string(values.size()) + " values, expected " +
                           std::to_string(size));
  }
  if (direction(values) != 0) return {};
  for (size_t i = 0; i < values.size(); i++) {
    if (!std::isfinite(values[i]))
      return wrong(
          what, name + "[" + std::to_string(i) + "] is " + number_text(values[i]) + ", no number");
  }
  const int way = values[1] > values[0] ? 1 : -1;
  for (size_t i = 1; i < values.size(); i++) {
    if (!(way * values[i] > way * values[i - 1])) {
      return wrong(what, name + " is not monotonic: " + name + "[" + std::to_string(i) + "] = " +
                             number_text(values[i]) + " follows " + number_text(values[i - 1]));
    }
  }
  return {};
}

// Monotonic ones: the ends are the extremes.
Status check_longitudes(const std::string& what, const std::vector<double>& lon) {
  constexpr double kFarthest = 720, kAround = 360.000001;
  for (double end : {lon.front(), lon.back()}) {
    if (std::abs(end) > kFarthest)
      return wrong(what, "longitude " + number_text(end) + "; expected degrees, -720 to 720");
  }
  const double span = std::abs(lon.back() - lon.front());
  if (span <= kAround) return {};
  return wrong(what, "its longitudes, from " + number_text(lon.front()) + " to " +
                         number_text(lon.back()) + ", go over " + number_text(span) +
                         " degrees; expected at most 360, once around the earth");
}

template <typename Thing>
Status check_unique(const std::string& kind, const std::vector<Thing>& things, const Thing& mine) {
  for (const Thing& other : things) {
    if (&other != &mine && other.name == mine.name) {
      return wrong(kind + " " + quoted(mine.name),
                   "there is a " + kind + " of this name already; names are unique in a context");
    }
  }
  return {};
}

// Grids may share a mapping: the files have one variable for them.
Status check_mapping(const Catalogue& catalogue, const Grid& grid) {
  const std::string& name = grid.mapping.name;
  const std::string what = "grid " + quoted(grid.name) + ", grid mapping " + quoted(name);
  WEIR_TRY(check_name("grid " + quoted(grid.name) + ", grid mapping", name));
  if (name == "time" || name == "time_bnds")
    return wrong(what, "weir writes the variable of this name itself");
  const auto is_taken = [&](const auto& things) {
    return std::any_of(things.begin(), things.end(),
                       [&](const auto& thing) { return thing.name == name; });
  };
  if (is_taken(catalogue.fields))
    return wrong(what, "there is a field of this name already; the two would be one variable");
  if (is_taken(catalogue.axes))
    return wrong(what, "there is an axis of this name already; the two would be one variable");
  if (grid.kind == GridKind::kPlane && grid.mapping.is_called("latitude_longitude")) {
    return wrong(what,
                 "x and y of a plane are no longitudes and latitudes; create the grid with "
                 "weir_grid_create_lonlat");
  }
  for (const Attribute& attribute : grid.mapping.attributes)
    WEIR_TRY(check_attribute(what, attribute));
  return {};
}

}  // namespace

Status check_name(const std::string& what, const std::string& name) {
  const std::string expected = "; expected a letter, then letters, digits and underscores";
  if (name.empty()) return wrong(what, "the name is empty" + expected);
  if (name.size() > kLongestName)
    return wrong(what + " " + quoted(name), "the name has more than 255 bytes");
  if (!is_letter(name[0]))
    return wrong(what + " " + quoted(name),
                 "the name begins with something else than a letter" + expected);
  for (size_t i = 0; i < name.size(); ++i) {
    if (is_letter(name[i]) || (name[i] >= '0' && name[i] <= '9')) continue;
    size_t end = i + 1;  // of the character in UTF-8
    while (end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) ++end;
    return wrong(what + " " + quoted(name),
                 "the name has " + quoted(name.substr(i, end - i)) + " in it" + expected);
  }
  return {};
}

Status check_attribute(const std::string& owner, const Attribute& attribute) {
  WEIR_TRY(check_name(owner + ", attribute", attribute.name));
  for (const char* own :
       {"_FillValue", "coordinates", "bounds", "calendar", "Conventions", "history"}) {
    if (attribute.name == own) {
      return wrong(owner + ", attribute " + quoted(own),
                   std::string("weir writes this attribute itself") +
                       (attribute.name == "_FillValue" ? "; give the number 'missing_value'" : ""));
    }
  }
  const std::string* text = std::get_if<std::string>(&attribute.value);
  if (text && text->size() > kLongestText)
    return wrong(owner + ", attribute " + quoted(attribute.name), "more than 1 MiB of text");
  return {};
}

Status check_grid(const Catalogue& catalogue, const Grid& grid) {
  const std::string what = "grid " + quoted(grid.name);
  WEIR_TRY(check_name("grid", grid.name));
  WEIR_TRY(check_unique("grid", catalogue.grids, grid));
  if (!grid.mapping.name.empty()) WEIR_TRY(check_mapping(catalogue, grid));
  if (grid.nx < 1 || grid.ny < 1) {
    return wrong(what, std::to_string(grid.nx) + " x " + std::to_string(grid.ny) +
                           " points; expected at least one in each dimension");
  }
  if (grid.nx > kMostPoints / grid.ny) {
    return wrong(what, std::to_string(grid.nx) + " x " + std::to_string(grid.ny) +
                           " points are more than 2^56");
  }
  switch (grid.kind) {
    case GridKind::kLonLat:
    case GridKind::kGaussian:
      if (grid.kind == GridKind::kGaussian && grid.ny % 2 != 0) {
        return wrong(what, std::to_string(grid.ny) +
                               " latitudes; a Gaussian grid has an even number of them (2 N)");
      }
      WEIR_TRY(check_coordinate(what, "lon", grid.x, grid.nx));
      WEIR_TRY(check_coordinate(what, "lat", grid.y, grid.ny));
      WEIR_TRY(check_longitudes(what, grid.x));
      for (double lat : {grid.y.front(), grid.y.back()}) {
        if (std::abs(lat) > 90.000001)
          return wrong(what, "latitude " + number_text(lat) + "; expected degrees from -90 to 90");
      }
      return {};
    case GridKind::kPlane:
      WEIR_TRY(check_coordinate(what, "x", grid.x, grid.nx));
      return check_coordinate(what, "y", grid.y, grid.ny);
    case GridKind::kCurvilinear: return {};
    case GridKind::kUnstructured:
      return grid.ny == 1 ? Status() : wrong(what, "an unstructured grid has one dimension");
  }
  return wrong(what, "no kind of grid that weir knows");
}

Status check_axis(const Catalogue& catalogue, const Axis& axis) {
  const std::string what = "axis " + quoted(axis.name);
  WEIR_TRY(check_name("axis", axis.name));
  WEIR_TRY(check_unique("axis", catalogue.axes, axis));
  for (const Field& field : catalogue.fields) {
    if (field.name == axis.name)
      return wrong(what, "there is a field of this name already; the two would be one variable");
  }
  if (axis.name == "time" || axis.name == "time_bnds")
    return wrong(what, "weir writes the variable of this name itself");
  if (axis.values.empty()) return wrong(what, "no values; expected at least one");
  WEIR_TRY(check_coordinate(what, "values", axis.values, static_cast<int64_t>(axis.values.size())));
  if (!axis.bounds.empty() && axis.bounds.size() != 2 * axis.values.size()) {
    return wrong(what, std::to_string(axis.bounds.size()) + " bounds; expected two for each of " +
                           std::to_string(axis.values.size()) + " values");
  }
  for (double bound : axis.bounds) {
    if (!std::isfinite(bound))
      return wrong(what, "a bound is " + number_text(bound) + ", no number");
  }
  for (const Attribute& attribute : axis.attributes) WEIR_TRY(check_attribute(what, attribute));
  return {};
}

Status check_decomposition(const Catalogue& catalogue, const Decomposition& mine) {
  const std::string what = "decomposition " + quoted(mine.name);
  WEIR_TRY(check_name("decomposition", mine.name));
  WEIR_TRY(check_unique("decomposition", catalogue.decompositions, mine));
  const Grid& grid = catalogue.grids[mine.grid];
  const auto outside = [&](const std::string& which) {
    return Status(WEIR_E_DECOMPOSITION, what + ": " + which + " grid " + quoted(grid.name) +
                                            ", which has " + std::to_string(grid.nx) + " x " +
                                            std::to_string(grid.ny) + " points, numbered from 0");
  };
  if (mine.halo.west < 0 || mine.halo.east < 0 || mine.halo.south < 0 || mine.halo.north < 0)
    return wrong(what, "a halo is negative");
  constexpr int64_t kWidestHalo = 1 << 20;
  if (mine.halo.west > kWidestHalo || mine.halo.east > kWidestHalo ||
      mine.halo.south > kWidestHalo || mine.halo.north > kWidestHalo) {
    return wrong(what, "a halo of more than a million points");
  }
  if (!mine.block) {
    for (size_t i = 0; i < mine.indices.size(); i++) {
      if (mine.indices[i] < 0 || mine.indices[i] >= grid.points()) {
        return outside("index " + std::to_string(mine.indices[i]) + " (entry " + std::to_string(i) +
                       ") lies outside of");
      }
    }
    return {};
  }
  if (mine.ni < 0 || mine.nj < 0)
    return wrong(what, "a block of " + std::to_string(mine.ni) + " x " + std::to_string(mine.nj) +
                           " points");
  if (mine.ni == 0 || mine.nj == 0) return {};
  if (mine.i0 < 0 || mine.ni > grid.nx || mine.i0 > grid.nx - mine.ni) {
    return outside(std::to_string(mine.ni) + " columns from " + std::to_string(mine.i0) +
                   " do not all lie in");
  }
  if (mine.j0 < 0 || mine.nj > grid.ny || mine.j0 > grid.ny - mine.nj) {
    return outside(std::to_string(mine.nj) + " rows from " + std::to_string(mine.j0) +
                   " do not all lie in");
  }
  return {};
}

}  // namespace weir::output
