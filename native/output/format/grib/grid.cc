// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/grid.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "output/model/gaussian.h"
#include "output/model/text.h"

namespace weir::output::grib {
namespace {

// Editions store millionths and thousandths of a degree.
constexpr double kSame_degrees = 2e-5;

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

  static bool even(const std::vector<double>& values) {
    const auto steps = static_cast<double>(values.size() - 1);
    const double step = values.size() < 2 ? 0 : (values.back() - values.front()) / steps;
    for (size_t i = 0; i < values.size(); i++) {
      if (std::abs(values[i] - (values.front() + static_cast<double>(i) * step)) > kSame_degrees)
        return false;
    }
    return true;
  }

  void corners() {
    add("latitudeOfFirstGridPointInDegrees", h_.lat->front());
    add("longitudeOfFirstGridPointInDegrees", h_.lon->front());
    add("latitudeOfLastGridPointInDegrees", h_.lat->back());
    add("longitudeOfLastGridPointInDegrees", h_.lon->back());
    add("iScansNegatively", h_.lon->back() < h_.lon->front());
    add("jScansPositively", h_.lat->back() > h_.lat->front());
    add("jPointsAreConsecutive", 0);
  }

  void increment(const char* key, const std::vector<double>& values) {
    if (values.size() < 2) return;
    add(key, std::abs(values.back() - values.front()) / static_cast<double>(values.size() - 1));
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
    add_text("gridType", regular ? "regular_ll" : "regular_gg");
    add("Ni", static_cast<double>(h_.nx));
    add("Nj", static_cast<double>(h_.ny));
    if (!regular) add("N", static_cast<double>(h_.ny / 2));
    corners();
    increment("iDirectionIncrementInDegrees", *h_.lon);
    if (regular) increment("jDirectionIncrementInDegrees", *h_.lat);
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
};

}  // namespace

const std::string* text_of(const Attributes& attributes, const std::string& name) {
  for (const Attribute& a : attributes) {
    if (a.name == name) return std::get_if<std::string>(&a.value);
  }
  return nullptr;
}

const Variable* coordinate_of(const FileDescription& d, int dimension) {
  for (const Variable& v : d.variables) {
    if (v.name == d.dimensions[static_cast<size_t>(dimension)].name && !v.values.empty() &&
        v.dimensions == std::vector<int>{dimension})
      return &v;
  }
  return nullptr;
}

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
  const Variable* last = coordinate_of(d, v.dimensions[n - 1]);
  const Variable* before = n > 1 ? coordinate_of(d, v.dimensions[n - 2]) : nullptr;
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
  if (name) return keys.named(*name);
  if (pl) {
    if (const auto* rows = std::get_if<std::vector<double>>(&pl->value)) return keys.reduced(*rows);
    return keys.wrong(pl->place, "pl is no list of numbers of points");
  }
  if (type) {
    const std::string* word = std::get_if<std::string>(&type->value);
    if (word && *word == "sh") return keys.harmonics();
    plan->header.push_back(*type);
    if (h.ny > 1) {
      keys.add("Ni", static_cast<double>(h.nx));
      keys.add("Nj", static_cast<double>(h.ny));
    }
    return {};
  }
  if (h.lon) return keys.lonlat();
  if (h.is_plane) {
    return keys.wrong("", "its grid is a plane; give gridType with the keys of its projection, or "
                          "write it as netCDF or Zarr");
  }
  if (plan->edition == 1)
    return keys.wrong("", "edition 1 of GRIB has no unstructured grids; use grib2");
  keys.add_text("gridType", "unstructured_grid");
  keys.add("numberOfDataPoints", static_cast<double>(plan->points));
  return {};
}

Status add_reduced(std::vector<double> rows, Plan* plan) {
  return GridKeys({}, plan).reduced(std::move(rows));
}

}  // namespace weir::output::grib
