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
    {"atmosphere_sigma_coordinate", "sigma", "sigmaLayer"},
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
                           {"K", 1},    {"1", 1},        {"", 1},       {"level", 1},
                           {"layer", 1}, {"sigma_level", 1}};

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

// Edition 1 has whole numbers (code table 3), in two octets, of the ends of a layer in one each.
struct Unit1 {
  const char* type;
  const char* name;
  double size;         // in Pa, m, K, 1
  bool top_is_least;   // of a layer; its top comes first
};
constexpr Unit1 kUnits1[] = {{"isobaricInhPa", "hPa", 100, true},
                             {"isobaricInPa", "Pa", 1, true},
                             {"heightAboveGround", "m", 1, false},
                             {"heightAboveSea", "m", 1, false},
                             {"depthBelowSea", "m", 1, true},
                             {"theta", "K", 1, false},
                             {"depthBelowLand", "cm", 0.01, true},
                             {"isobaricLayer", "kPa", 1000, true},
                             {"depthBelowLandLayer", "cm", 0.01, true},
                             {"heightAboveGroundLayer", "hm", 100, false},
                             {"heightAboveSeaLayer", "hm", 100, false},
                             {"sigma", "ten-thousandths", 1e-4, false},
                             {"sigmaLayer", "hundredths", 0.01, true},
                             {"hybridLayer", "", 1, true}};
constexpr Unit1 kPlain1 = {"", "", 1, true};
constexpr double kMostLevel1 = 65535, kMostEnd1 = 255;

class Levels1 {
 public:
  Levels1(const Variable& axis, double factor, const std::string& type)
      : axis_(axis), factor_(factor), type_(type) {
    for (const Unit1& unit : kUnits1) {
      if (type == unit.type) unit_ = unit;
    }
  }

  Status add(size_t i, const std::vector<double>* bounds, FormatKeys* to) const {
    const bool is_layer = type_.ends_with("Layer") && *unit_.type != '\0';
    if (bounds == nullptr && is_layer) {
      return {WEIR_E_FORMAT, ": levels of the type " + quoted(type_) +
                                 " are layers, and the axis has no bounds, whose ends edition 1 of "
                                 "GRIB has; give the axis bounds (weir_axis_set_bounds), or another "
                                 "typeOfLevel"};
    }
    if (bounds == nullptr) return add_whole("level", axis_.values[i], kMostLevel1, to);
    if (*unit_.type == '\0') {
      return {WEIR_E_FORMAT, ": layers of the type " + quoted(type_) +
                                 " are not written in edition 1 of GRIB; use grib2"};
    }
    double top = (*bounds)[2 * i], bottom = (*bounds)[2 * i + 1];
    if ((top < bottom) != unit_.top_is_least) std::swap(top, bottom);
    WEIR_TRY(add_whole("topLevel", top, kMostEnd1, to));
    return add_whole("bottomLevel", bottom, kMostEnd1, to);
  }

 private:
  Status add_whole(const char* key, double value, double most, FormatKeys* to) const {
    const double scaled = value * factor_ / unit_.size, whole = std::nearbyint(scaled);
    if (std::abs(scaled - whole) <= 1e-6 && whole >= 0 && whole <= most) {
      to->push_back({key, whole, ""});
      return {};
    }
    const std::string* units = text_of(axis_.attributes, "units");
    const std::string of = *unit_.name ? std::string(" of ") + unit_.name : "";
    return {WEIR_E_FORMAT, (most == kMostEnd1 ? ": the end " : ": level ") + number_text(value) +
                               (units && *units != "1" ? " " + *units : "") +
                               (most == kMostEnd1 ? " of a layer" : "") + " is no whole number" +
                               of + " from 0 to " + number_text(most) +
                               ", as edition 1 of GRIB has them; use grib2"};
  }

  const Variable& axis_;
  double factor_;
  const std::string& type_;
  Unit1 unit_ = kPlain1;
};

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
  const Levels1 levels1(axis, factor, all.type);
  for (size_t i = 0; i < axis.values.size(); i++) {
    FormatKeys& keys = all.levels.emplace_back();
    if (edition == 1) {
      const Status added = levels1.add(i, bounds, &keys);
      if (!added.ok()) return added;
      continue;
    }
    add_surface("First", (bounds ? (*bounds)[2 * i] : axis.values[i]) * factor, &keys);
    if (bounds) add_surface("Second", (*bounds)[2 * i + 1] * factor, &keys);
  }
  return all;
}

}  // namespace weir::output::grib
