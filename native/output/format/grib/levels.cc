// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/levels.h"

#include <algorithm>
#include <cmath>

#include "output/format/grib/grid.h"
#include "output/model/text.h"

namespace weir::output::grib {
namespace {

struct LevelType {
  const char* standard_name;
  const char* type;
  const char* layer;  // where the axis has bounds; null: the same
};
constexpr LevelType kLevelTypes[] = {
    {"air_pressure", "isobaricInhPa", nullptr},
    {"height", "heightAboveGround", "heightAboveGroundLayer"},
    {"altitude", "heightAboveSea", nullptr},
    {"depth", "depthBelowLand", "depthBelowLandLayer"},
    {"air_potential_temperature", "theta", nullptr},
    {"atmosphere_hybrid_sigma_pressure_coordinate", "hybrid", nullptr},
    {"atmosphere_hybrid_height_coordinate", "hybridHeight", nullptr},
    {"model_level_number", "hybrid", nullptr},
};

struct Unit {
  const char* name;
  double factor;  // to Pa, m, K, 1
};
constexpr Unit kUnits[] = {{"Pa", 1},   {"hPa", 100},    {"mbar", 100}, {"millibar", 100},
                           {"m", 1},    {"km", 1000},    {"cm", 0.01},  {"mm", 0.001},
                           {"K", 1},    {"1", 1},        {"", 1},       {"level", 1}};

// Its factor; 0: not one of levels.
double factor_of(const Variable& axis) {
  const std::string* units = text_of(axis.attributes, "units");
  for (const Unit& unit : kUnits) {
    if ((units ? *units : "") == unit.name) return unit.factor;
  }
  return 0;
}

// By the axis' attributes; "": not known.
std::string type_of(const Variable& axis, double factor, const FormatKey* given) {
  if (given) {
    const std::string* word = std::get_if<std::string>(&given->value);
    return word ? *word : "";
  }
  const std::string* units = text_of(axis.attributes, "units");
  const std::string* name = text_of(axis.attributes, "standard_name");
  const bool bounds = text_of(axis.attributes, "bounds") != nullptr;
  for (const LevelType& type : kLevelTypes) {
    if (name && *name == type.standard_name) return bounds && type.layer ? type.layer : type.type;
  }
  return !name && units && (*units == "Pa" || factor == 100) ? "isobaricInhPa" : "";
}

// A number as GRIB2 has it: value times ten to the minus factor.
void add_surface(const char* which, double value, FormatKeys* to) {
  int factor = 0;
  double scaled = value;
  const auto whole = [&] {
    return std::abs(scaled - std::nearbyint(scaled)) < 1e-6 * std::max(1.0, std::abs(scaled));
  };
  while (factor < 9 && !whole() && std::abs(scaled) < 1e8) scaled = value * std::pow(10, ++factor);
  to->push_back({std::string("scaleFactorOf") + which + "FixedSurface",
                 static_cast<double>(factor), ""});
  to->push_back(
      {std::string("scaledValueOf") + which + "FixedSurface", std::nearbyint(scaled), ""});
}

// Whole hPa are levels of isobaricInhPa, others of isobaricInPa.
bool fits_hPa(const Variable& axis, double factor) {
  return std::all_of(axis.values.begin(), axis.values.end(), [&](double value) {
    const double hPa = value * factor / 100;
    return std::abs(hPa - std::nearbyint(hPa)) <= 1e-6;
  });
}

Status add_level1(double value, const std::string& type, FormatKeys* to) {
  const double level = type == "isobaricInhPa" ? value / 100 : value;
  if (std::abs(level - std::nearbyint(level)) > 1e-6) {
    return {WEIR_E_FORMAT, ": level " + number_text(value) +
                               " is no whole number, as edition 1 of GRIB has them; use grib2"};
  }
  to->push_back({"level", std::nearbyint(level), ""});
  return {};
}

}  // namespace

Vertical vertical_of(const Variable& axis, const std::string& type) {
  const std::string* name = text_of(axis.attributes, "standard_name");
  Vertical vertical;
  vertical.of_model = type.rfind("hybrid", 0) == 0 || type == "generalVertical";
  vertical.is_hybrid = type.rfind("hybrid", 0) == 0 && name &&
                       *name == "atmosphere_hybrid_sigma_pressure_coordinate";
  for (const double value : axis.values) vertical.highest = std::max(vertical.highest, value);
  return vertical;
}

std::string check_coefficients(const Vertical& vertical, const Coefficients& has) {
  constexpr const char* kExpected =
      "expected all a, then all b, of all interfaces of the model: 2 (n + 1) numbers for n levels";
  if (has.key == nullptr) {
    if (!vertical.is_hybrid) return "";
    return std::string("its levels are those of a hybrid coordinate, which says nothing without "
                       "its coefficients; give pv, or the axis' attribute GRIB_pv (") + kExpected +
           "), or standard_name model_level_number";
  }
  const auto* list = std::get_if<std::vector<double>>(&has.key->value);
  if (list == nullptr || list->empty() || list->size() % 2 != 0)
    return std::string("pv is no list of coefficients: ") + kExpected;
  if (!vertical.of_model) return "";
  constexpr size_t kMost1 = 255;
  if (has.edition == 1 && list->size() > kMost1) {
    return "pv has " + std::to_string(list->size()) +
           " coefficients, and edition 1 of GRIB has room for 255; use grib2";
  }
  // Fields between levels have one more.
  if (vertical.highest <= static_cast<double>(list->size()) / 2) return "";
  return "pv has " + std::to_string(list->size()) + " coefficients and its highest level is " +
         number_text(vertical.highest) + ": " + kExpected;
}

Result<Levels> levels_of(const FileDescription& d, const Variable& axis, int edition,
                         const FormatKey* given) {
  const double factor = factor_of(axis);
  Levels all{type_of(axis, factor, given), {}};
  if (all.type.empty()) {
    return Status(WEIR_E_FORMAT,
                  ": what kind of levels it has is neither known by its standard_name nor by units "
                  "of pressure; set typeOfLevel, or the axis' attribute GRIB_typeOfLevel "
                  "(\"hybrid\", \"heightAboveGround\", ...)");
  }
  if (factor == 0) {
    return Status(WEIR_E_FORMAT, ": units " + quoted(*text_of(axis.attributes, "units")) +
                                     "; expected Pa, hPa, m, cm, K or 1 for levels of GRIB");
  }
  if (all.type == "isobaricInhPa" && !fits_hPa(axis, factor)) all.type = "isobaricInPa";
  const std::vector<double>* bounds = nullptr;
  for (const Variable& v : d.variables) {
    if (v.name == axis.name + "_bnds" && v.values.size() == 2 * axis.values.size())
      bounds = &v.values;
  }
  if (!all.type.ends_with("Layer")) bounds = nullptr;
  for (size_t i = 0; i < axis.values.size(); i++) {
    FormatKeys& keys = all.levels.emplace_back();
    if (edition == 1) {
      const Status added = add_level1(axis.values[i] * factor, all.type, &keys);
      if (!added.ok()) return added;
      continue;
    }
    add_surface("First", (bounds ? (*bounds)[2 * i] : axis.values[i]) * factor, &keys);
    if (bounds) add_surface("Second", (*bounds)[2 * i + 1] * factor, &keys);
  }
  return all;
}

}  // namespace weir::output::grib
