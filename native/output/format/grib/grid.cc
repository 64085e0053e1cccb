// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/grid.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "output/format/grib/library.h"
#include "output/model/gaussian.h"
#include "output/model/text.h"

namespace weir::output::grib {
namespace {

constexpr double kSame_degrees = 2e-5;
// Points are off by at most this part of the distance between two.
constexpr double kMostOff = 0.1;
// What ecCodes takes for a number that is missing: all its bits are set.
constexpr double kMissing = 2147483647;

// Keys that follow from the coordinates of the field.
constexpr const char* kDerived[] = {
    "Ni", "Nj", "Nx", "Ny", "N", "J", "K", "M", "Di", "Dj", "pl", "scanningMode",
    "numberOfPointsAlongAParallel", "numberOfPointsAlongAMeridian", "numberOfDataPoints",
    "numberOfValues", "numberOfParallelsBetweenAPoleAndTheEquator", "latitudeOfFirstGridPoint",
    "longitudeOfFirstGridPoint", "latitudeOfLastGridPoint", "longitudeOfLastGridPoint",
    "latitudeOfFirstGridPointInDegrees", "longitudeOfFirstGridPointInDegrees",
    "latitudeOfLastGridPointInDegrees", "longitudeOfLastGridPointInDegrees", "iDirectionIncrement",
    "jDirectionIncrement", "iDirectionIncrementInDegrees", "jDirectionIncrementInDegrees",
    "DiInDegrees", "DjInDegrees", "iScansNegatively", "jScansPositively", "jPointsAreConsecutive",
    "alternativeRowScanning"};

class GridKeys {
 public:
  GridKeys(const Horizontal& horizontal, Plan* plan) : h_(horizontal), plan_(plan) {}

  void add(const char* name, double value) { plan_->header.push_back({name, value, ""}); }
  void add_text(const char* name, const char* text) {
    plan_->header.push_back({name, std::string(text), ""});
  }
  Status wrong(const std::string& place, const std::string& why) const {
    return {WEIR_E_FORMAT,
            (place.empty() ? "" : place + ": ") + "field " + quoted(plan_->field) + ": " + why};
  }

  static double step_of(const std::vector<double>& values) {
    if (values.size() < 2) return 0;
    return (values.back() - values.front()) / static_cast<double>(values.size() - 1);
  }

  static bool even(const std::vector<double>& values) {
    const double step = step_of(values);
    const double most = std::min(kSame_degrees, kMostOff * std::abs(step));
    for (size_t i = 0; i < values.size(); i++) {
      if (std::abs(values[i] - (values.front() + static_cast<double>(i) * step)) > most)
        return false;
    }
    return true;
  }

  // As the edition holds it: in thousandths of a degree, or millionths.
  double held(double degrees) const {
    const double unit = plan_->edition == 1 ? 1e3 : 1e6;
    return std::nearbyint(degrees * unit) / unit;
  }

  static std::string text(double degrees) {
    return number_text(std::nearbyint(degrees * 1e9) / 1e9);
  }

  // Readers find the points between the first and the last one.
  Status check_ends(const char* what, const std::vector<double>& values) const {
    const double step = std::abs(step_of(values));
    for (const double end : {values.front(), values.back()}) {
      if (step == 0 || std::abs(held(end) - end) <= kMostOff * step) continue;
      return wrong("", std::string("its ") + what + " are " + text(step) +
                           " degrees apart, and edition " + std::to_string(plan_->edition) +
                           " of GRIB has whole " +
                           (plan_->edition == 1 ? "thousandths" : "millionths") +
                           " of a degree: " + text(end) + " would be read as " +
                           text(held(end)) +
                           (plan_->edition == 1 ? "; use grib2" : "; write it as netCDF or Zarr"));
    }
    return {};
  }

  // Whether points that are counted by the increment, as the edition holds it, are where they are.
  bool holds_increment(const std::vector<double>& values) const {
    const double step = std::abs(step_of(values));
    const double off = std::abs(held(step) - step) * static_cast<double>(values.size() - 1);
    return off <= std::min(plan_->edition == 1 ? 0.5e-3 : kSame_degrees, kMostOff * step);
  }

  // Edition 2 has longitudes from 0 to 360 (regulation 92.1.6), edition 1 those of the west, too.
  double longitude(double value) const {
    if (plan_->edition == 1) return value;
    return value < 0 ? value + 360 : value > 360 ? value - 360 : value;
  }

  void corners() {
    add("latitudeOfFirstGridPointInDegrees", h_.lat->front());
    add("longitudeOfFirstGridPointInDegrees", longitude(h_.lon->front()));
    add("latitudeOfLastGridPointInDegrees", h_.lat->back());
    add("longitudeOfLastGridPointInDegrees", longitude(h_.lon->back()));
    add("iScansNegatively", h_.lon->back() < h_.lon->front());
    add("jScansPositively", h_.lat->back() > h_.lat->front());
    add("jPointsAreConsecutive", 0);
  }

  void increment(const char* key, const std::vector<double>& values) {
    if (values.size() < 2) return;
    add(key, std::abs(step_of(values)));
    holds_increments_ = holds_increments_ && holds_increment(values);
  }

  Status lonlat() {
    if (!even(*h_.lon))
      return wrong("", "its longitudes are not evenly spaced, which GRIB does not have");
    std::vector<double> gaussian;
    if (h_.ny % 2 == 0 && h_.ny >= 4 && !even(*h_.lat)) {
      gaussian = gaussian_latitudes(h_.ny);
      if (h_.lat->front() < h_.lat->back()) std::reverse(gaussian.begin(), gaussian.end());
      for (int64_t i = 0; i < h_.ny && !gaussian.empty(); i++) {
        if (std::abs(gaussian[static_cast<size_t>(i)] - (*h_.lat)[static_cast<size_t>(i)]) > 1e-3)
          gaussian.clear();
      }
    }
    const bool regular = gaussian.empty();
    if (regular && !even(*h_.lat)) {
      return wrong("", "its latitudes are neither evenly spaced nor those of a Gaussian grid, "
                       "which GRIB does not have; write it as netCDF or Zarr");
    }
    WEIR_TRY(check_ends("longitudes", *h_.lon));
    if (regular) WEIR_TRY(check_ends("latitudes", *h_.lat));
    add_text("gridType", regular ? "regular_ll" : "regular_gg");
    add("Ni", static_cast<double>(h_.nx));
    add("Nj", static_cast<double>(h_.ny));
    if (!regular) add("N", static_cast<double>(h_.ny / 2));
    corners();
    increment("iDirectionIncrementInDegrees", *h_.lon);
    if (regular) increment("jDirectionIncrementInDegrees", *h_.lat);
    return {};
  }

  // Readers then have them from the first and last points: counted by rounded increments, points
  // would be beside their places, farther with each one. Where a grid has a row or column alone,
  // ecCodes needs the flag that there are increments.
  Status leave_out_increments() {
    if (holds_increments_) return {};
    const bool row = h_.ny == 1, column = h_.nx == 1;
    if (plan_->edition == 1 && column) {
      return wrong("", "its latitudes, in one column, are " + text(std::abs(step_of(*h_.lat))) +
                           " degrees apart, and edition 1 of GRIB has whole thousandths of a "
                           "degree; use grib2");
    }
    if (plan_->edition == 1) {
      add("ijDirectionIncrementGiven", row);
    } else {
      add("iDirectionIncrementGiven", column);
      add("jDirectionIncrementGiven", row);
    }
    for (const std::string name : {"iDirectionIncrement", "jDirectionIncrement"}) {
      const auto has = [&](const FormatKey& key) { return key.name == name + "InDegrees"; };
      if (std::erase_if(plan_->header, has) > 0) add(name.c_str(), kMissing);
    }
    return {};
  }

  Status reduced(std::vector<double> rows) {
    double points = 0, most = 0;
    for (double row : rows) points += row, most = std::max(most, row);
    if (rows.empty() || rows.size() % 2 != 0 || points != static_cast<double>(plan_->points)) {
      return wrong("", "the rows of its reduced Gaussian grid have " + number_text(points) +
                           " points on " + std::to_string(rows.size()) +
                           " latitudes, the field has " + std::to_string(plan_->points));
    }
    const std::vector<double> lat = gaussian_latitudes(static_cast<int64_t>(rows.size()));
    add_text("gridType", "reduced_gg");
    add("Nj", static_cast<double>(rows.size()));
    add("N", static_cast<double>(rows.size() / 2));
    add("latitudeOfFirstGridPointInDegrees", lat.front());
    add("longitudeOfFirstGridPointInDegrees", 0);
    add("latitudeOfLastGridPointInDegrees", lat.back());
    add("longitudeOfLastGridPointInDegrees", 360 - 360 / most);
    add("jScansPositively", 0);
    plan_->header.push_back({"pl", std::move(rows), ""});
    return {};
  }

  // "O320": 20, 24, ... points; "N320": as ecCodes' samples have it; "F320": a full one.
  Status named(const FormatKey& key) {
    const std::string* name = std::get_if<std::string>(&key.value);
    int64_t n = 0;
    const bool valid =
        name && name->size() > 1 &&
        std::from_chars(name->data() + 1, name->data() + name->size(), n).ptr ==
            name->data() + name->size() &&
        n >= 2 && n <= 16000 && std::string("ONF").find((*name)[0]) != std::string::npos;
    if (!valid)
      return wrong(key.place, "gridName is not one of \"O320\", \"N320\" or the like");
    if ((*name)[0] == 'F')
      return wrong(key.place, "a full Gaussian grid is made by weir_grid_create_gaussian; "
                              "gridName is for reduced ones");
    if ((*name)[0] == 'N') {
      plan_->named_grid = *name;
      return {};
    }
    std::vector<double> rows;
    for (int64_t i = 0; i < 2 * n; i++)
      rows.push_back(static_cast<double>(16 + 4 * (i < n ? i + 1 : 2 * n - i)));
    return reduced(std::move(rows));
  }

  Status harmonics() {
    // (T + 1) (T + 2) / 2 complex coefficients.
    const auto t = static_cast<int64_t>(
        std::lround((std::sqrt(1 + 4 * static_cast<double>(plan_->points)) - 3) / 2));
    if (t < 1 || (t + 1) * (t + 2) != plan_->points) {
      return wrong("", std::to_string(plan_->points) +
                           " numbers are no spherical harmonics of a triangular truncation: "
                           "expected (T + 1) (T + 2)");
    }
    plan_->sample = "sh_sfc_grib";
    for (const char* key : {"J", "K", "M"}) add(key, static_cast<double>(t));
    // The part that is not packed; the sample's may be larger than all of it.
    constexpr int64_t kUsual = 20;
    for (const char* key : {"JS", "KS", "MS"})
      add(key, static_cast<double>(std::min(kUsual, 2 * t / 3)));
    return {};
  }

 private:
  Horizontal h_;
  Plan* plan_;
  bool holds_increments_ = true;
};

}  // namespace

Horizontal horizontal_of(const FileDescription& d, const Variable& v) {
  const auto size = [&](size_t i) {
    return d.dimensions[static_cast<size_t>(v.dimensions[i])].size;
  };
  const auto is = [&](const Variable* c, const char* name) {
    const std::string* says = c ? text_of(c->attributes, "standard_name") : nullptr;
    return says && *says == name;
  };
  Horizontal h;
  const size_t n = v.dimensions.size();
  if (n == 0) return h;
  const Variable* last = d.coordinate_of(v.dimensions[n - 1]);
  const Variable* before = n > 1 ? d.coordinate_of(v.dimensions[n - 2]) : nullptr;
  const bool two = n > 1 && (last == nullptr) == (before == nullptr) &&
                   (last == nullptr || !is(before, "longitude"));
  h.first = two ? n - 2 : n - 1;
  h.nx = size(n - 1);
  if (two) h.ny = size(n - 2);
  if (is(last, "longitude") && is(before, "latitude")) {
    h.lon = &last->values;
    h.lat = &before->values;
  } else {
    h.is_plane = last != nullptr;
  }
  return h;
}

namespace {

// Longitudes may differ by turns.
bool same_values(const FormatKey& a, const FormatKey& b) {
  const double *first = std::get_if<double>(&a.value), *second = std::get_if<double>(&b.value);
  if (!first || !second) return a.value == b.value;
  const bool turns = a.name.rfind("longitude", 0) == 0;
  const double apart = turns ? std::remainder(*first - *second, 360) : *first - *second;
  return std::abs(apart) <= kSame_degrees;
}

// Keys that are given and say what the coordinates say are left out; others would have readers put
// the values elsewhere.
Status check_derived(const GridKeys& keys, FormatKeys* given, const Plan& plan) {
  for (const char* name : kDerived) {
    const auto is = [&](const FormatKey& key) { return key.name == name; };
    const auto mine = std::find_if(given->begin(), given->end(), is);
    if (mine == given->end()) continue;
    const auto derived = std::find_if(plan.header.begin(), plan.header.end(), is);
    if (derived == plan.header.end()) {
      return keys.wrong(mine->place, mine->name + " = " + value_text(*mine) +
                                         " is not for its grid, whose keys follow from its "
                                         "coordinates; leave it out");
    }
    if (!same_values(*mine, *derived)) {
      return keys.wrong(mine->place, mine->name + " = " + value_text(*mine) +
                                         " contradicts its coordinates, by which it is " +
                                         value_text(*derived) +
                                         "; leave it out, or define another grid");
    }
    given->erase(mine);
  }
  return {};
}

// A type that is given, of a grid of longitudes and latitudes.
Status check_type(const GridKeys& keys, const FormatKey& given, const Plan& plan) {
  for (const FormatKey& key : plan.header) {
    if (key.name != "gridType" || key.value == given.value) continue;
    return keys.wrong(given.place, "gridType = " + value_text(given) +
                                       " contradicts its coordinates, by which it is " +
                                       value_text(key) + "; leave it out");
  }
  return {};
}

// The numbers of points that a type which is given has by its own keys.
Status check_points(const GridKeys& keys, const FormatKeys& given, const Plan& plan) {
  double points[2] = {};
  const FormatKey* last = nullptr;
  for (const FormatKey& key : given) {
    const double* n = std::get_if<double>(&key.value);
    if (n && (key.name == "Nx" || key.name == "Ni")) points[0] = *n, last = &key;
    if (n && (key.name == "Ny" || key.name == "Nj")) points[1] = *n, last = &key;
  }
  const double all = points[0] * points[1];
  if (all == 0 || all == static_cast<double>(plan.points)) return {};
  return keys.wrong(last->place, number_text(points[0]) + " x " + number_text(points[1]) +
                                     " points contradict its grid, which has " +
                                     std::to_string(plan.points));
}

}  // namespace

Status add_grid(const Horizontal& h, FormatKeys* given, Plan* plan) {
  GridKeys keys(h, plan);
  const auto take = [&](const char* name) -> std::optional<FormatKey> {
    const auto at = std::find_if(given->begin(), given->end(),
                                 [&](const FormatKey& key) { return key.name == name; });
    if (at == given->end()) return std::nullopt;
    FormatKey key = std::move(*at);
    given->erase(at);
    return key;
  };
  const std::optional<FormatKey> type = take("gridType"), name = take("gridName"), pl = take("pl");
  const auto checked = [&](const Status& status) {
    return status.ok() ? check_derived(keys, given, *plan) : status;
  };
  if (name) return checked(keys.named(*name));
  if (pl) {
    if (const auto* rows = std::get_if<std::vector<double>>(&pl->value))
      return checked(keys.reduced(*rows));
    return keys.wrong(pl->place, "pl is no list of numbers of points");
  }
  const std::string* word = type ? std::get_if<std::string>(&type->value) : nullptr;
  if (word && *word == "sh") return checked(keys.harmonics());
  if (word && *word == "reduced_gg") {
    return keys.wrong(type->place, "gridType = 'reduced_gg' does not say the points of its rows; "
                                   "give gridName (\"O320\", \"N320\") or pl instead");
  }
  if (h.lon && (!type || (word && word->rfind("regular_", 0) == 0))) {
    WEIR_TRY(keys.lonlat());
    if (type) WEIR_TRY(check_type(keys, *type, *plan));
    WEIR_TRY(checked({}));
    return keys.leave_out_increments();
  }
  if (type && !(word && *word == "unstructured_grid")) {
    plan->header.push_back(*type);
    WEIR_TRY(check_points(keys, *given, *plan));
    if (h.ny > 1) {
      keys.add("Ni", static_cast<double>(h.nx));
      keys.add("Nj", static_cast<double>(h.ny));
    }
    return {};
  }
  if (h.is_plane) {
    return keys.wrong("", "its grid is a plane; give gridType with the keys of its projection, or "
                          "write it as netCDF or Zarr");
  }
  if (plan->edition == 1)
    return keys.wrong("", "edition 1 of GRIB has no unstructured grids; use grib2");
  keys.add_text("gridType", "unstructured_grid");
  keys.add("numberOfDataPoints", static_cast<double>(plan->points));
  return checked({});
}

Status add_reduced(std::vector<double> rows, Plan* plan) {
  return GridKeys({}, plan).reduced(std::move(rows));
}

}  // namespace weir::output::grib
