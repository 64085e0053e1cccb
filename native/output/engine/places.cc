// SPDX-License-Identifier: Apache-2.0
#include "output/engine/places.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>
#include <sstream>
#include <type_traits>

#include "output/engine/getting.h"
#include "output/engine/target.h"
#include "output/model/text.h"
#include "output/model/units.h"

namespace weir::output {
namespace {

constexpr double kNearPole = 90 - 1e-4;

bool is_in(const std::string& units, const std::string& direction) {
  const std::string letter(1, static_cast<char>(direction[0] - 'a' + 'A'));
  for (const std::string word : {"degree", "degrees"}) {
    if (units == word + "_" + direction || units == word + "_" + letter || units == word + letter)
      return true;
  }
  return false;
}

// Null: it is neither, or in other units than degrees and radians.
std::optional<PlaceVariable> place_of(const std::string& name, const Found& found) {
  PlaceVariable place;
  if (name.size() >= sizeof place.name) return {};
  name.copy(place.name, name.size());
  place.is_radian = same_units(found.units, "radian").value_or(false);
  const bool east = is_in(found.units, "east"), north = is_in(found.units, "north");
  const bool plain = found.units.empty() || place.is_radian ||
                     same_units(found.units, "degrees").value_or(false);
  place.is_longitude = east || (plain && found.standard_name == "longitude");
  if (!place.is_longitude && !north && !(plain && found.standard_name == "latitude")) return {};
  place.type = found.type;
  if (found.packing) place.scale = found.packing->scale, place.offset = found.packing->offset;
  place.fills = found.fills;
  return place;
}

// Degrees that two places of one point may be apart: a tenth of the distance of neighbours in a
// fine grid, at least what single precision has.
double tolerance_of(const Grid& grid) {
  double most = 0, step = 10 * kSameDegrees;
  for (size_t i = 0; i < grid.lon.size(); ++i) {
    most = std::max({most, std::abs(grid.lon[i]), std::abs(grid.lat[i])});
    if (i == 0) continue;
    const double apart = std::max(std::abs(std::remainder(grid.lon[i] - grid.lon[i - 1], 360)),
                                  std::abs(grid.lat[i] - grid.lat[i - 1]));
    if (apart > 0) step = std::min(step, apart);
  }
  return std::max(step / 10, most * 0x1p-23);
}

// What has been compared already is not read again: restarts have many fields in one file.
std::string key_of(const std::string& path, const std::string& place, const Grid& grid) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) return {};
  std::ostringstream key;
  key << facts.st_dev << ' ' << facts.st_ino << ' ' << facts.st_size << ' ' << facts.st_mtim.tv_sec
      << ' ' << facts.st_mtim.tv_nsec << ' ' << grid.name << ' ' << place;
  return key.str();
}

}  // namespace

std::vector<PlaceVariable> places_of(Reader& reader, const Found& found, const Grid& grid,
                                     int64_t record) {
  std::vector<PlaceVariable> places;
  if (grid.lonlat_decomposition < 0) return places;
  const auto horizontal = static_cast<std::ptrdiff_t>(grid.one_dimensional() ? 1 : 2);
  if (std::ssize(found.lengths) < horizontal) return places;
  const std::vector<int64_t> lengths(found.lengths.end() - horizontal, found.lengths.end());
  std::istringstream words(found.coordinates);
  for (std::string word; words >> word;) {
    const Result<Found> other = reader.find(word);
    if (!other.ok() || (*other).lengths != lengths) continue;
    std::optional<PlaceVariable> place = place_of(word, *other);
    if (!place) continue;
    if ((*other).over_time && (*other).records > record) place->record = record;
    places.push_back(std::move(*place));
  }
  return places;
}

std::string places_differ(const PlaceVariable& place, std::vector<double> values,
                          const Grid& grid) {
  const std::vector<double>& expected = place.is_longitude ? grid.lon : grid.lat;
  const double degrees = tolerance_of(grid);
  size_t first = 0, many = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool is_none = std::isnan(values[i]) || place.fills.has(values[i]);
    values[i] = values[i] * place.scale + place.offset;
    if (place.is_radian) values[i] *= 180 / std::numbers::pi;
    double apart = values[i] - expected[i];
    if (place.is_longitude) apart = std::remainder(apart, 360);
    const bool is_pole = place.is_longitude && std::abs(grid.lat[i]) > kNearPole;
    if (is_none || is_pole || std::abs(apart) <= degrees) continue;
    if (many++ == 0) first = i;
  }
  if (many == 0) return "";
  return "coordinate " + quoted(place.name) + " has " + number_text(values[first]) +
         " degrees at point " + std::to_string(first) + " of this rank, expected " +
         number_text(expected[first]) + " (" + std::to_string(many) + " of " +
         std::to_string(values.size()) + " differ)";
}

// [collective] A variable of places is scattered as a field of its own is.
Status Session::compare_places(const Catalogue& catalogue, const Getting& g,
                               const PlaceVariable& place, const std::string& what) {
  const Grid& grid = catalogue.grid_of(g.field);
  Field field;
  field.name = place.name;
  field.type = WEIR_FLOAT64;
  Getting c{.index = -1, .field = field};
  c.leaders = g.leaders;
  c.leader = g.leader;
  c.reader = g.reader;
  c.wanted.record = place.record;
  c.wanted.type = place.type;
  c.shape = {1, grid.points(), sizeof(double), 1};
  Result<Pieces> pieces =
      Pieces::of(catalogue.decompositions[static_cast<size_t>(grid.lonlat_decomposition)], grid);
  if (pieces.ok()) c.mine = std::move(*pieces);
  WEIR_TRY(model_->agree(pieces.status()));
  WEIR_TRY(share_get(&c));
  std::vector<double> values(static_cast<size_t>(c.mine.points()));
  WEIR_TRY(scatter(c, reinterpret_cast<char*>(values.data())));
  const std::string differ = places_differ(place, std::move(values), grid);
  if (differ.empty()) return model_->agree({});
  return model_->agree({WEIR_E_FORMAT, what + " is not where the field is: " + differ +
                                           "; declare the grid of the file, or bring the file to "
                                           "the field's first (cdo remapbil)"});
}

Status Session::check_places(const Catalogue& catalogue, const std::string& path,
                             const Getting& g) {
  const Grid& grid = catalogue.grid_of(g.field);
  if (grid.lonlat_decomposition < 0) return {};
  const std::string file = absolute_path(setup_.settings.directory, path);
  std::vector<PlaceVariable> places;
  if (model_->rank() == 0) places = g.wanted.places;
  std::erase_if(places, [&](const PlaceVariable& place) {
    return same_places_.contains(key_of(file, place.name, grid));
  });
  static_assert(std::is_trivially_copyable_v<PlaceVariable>);
  std::vector<char> bytes(places.size() * sizeof(PlaceVariable));
  if (!places.empty()) std::memcpy(bytes.data(), places.data(), bytes.size());
  WEIR_TRY(model_->broadcast(bytes, 0));
  for (size_t at = 0; at < bytes.size(); at += sizeof(PlaceVariable)) {
    PlaceVariable place;
    std::memcpy(&place, bytes.data() + at, sizeof place);
    WEIR_TRY(compare_places(catalogue, g, place, path + ": variable '" + g.field.name + "'"));
    if (model_->rank() == 0) same_places_.insert(key_of(file, place.name, grid));
  }
  return {};
}

}  // namespace weir::output
