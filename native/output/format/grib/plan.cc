// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/plan.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "output/format/grib/grid.h"
#include "output/model/text.h"

namespace weir::output::grib {
namespace {

constexpr const char* kPrefix = "GRIB_";

// Keys that others depend on, in the order in which they are set.
constexpr const char* kFirst[] = {"centre",
                                  "originatingCentre",
                                  "subCentre",
                                  "tablesVersion",
                                  "localTablesVersion",
                                  "setLocalDefinition",
                                  "grib2LocalSectionNumber",
                                  "localDefinitionNumber",
                                  "generatingProcessIdentifier",
                                  "shapeOfTheEarth"};
constexpr const char* kParameter[] = {"discipline", "parameterCategory", "parameterNumber",
                                      "table2Version", "indicatorOfParameter",
                                      "paramId", "shortName", "cfName", "cfVarName"};
constexpr const char* kPacking[] = {"packingType", "bitsPerValue", "decimalScaleFactor",
                                    "binaryScaleFactor", "precision"};

struct Operation {
  const char* method;
  int processing;  // GRIB2, table 4.10
  int indicator;   // GRIB1, table 5
};
constexpr Operation kOperations[] = {
    {"mean", 0, 3}, {"sum", 1, 4}, {"maximum", 2, 2}, {"minimum", 3, 2}};

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

std::string operation_of(const Variable& v) {
  const std::string* methods = text_of(v.attributes, "cell_methods");
  if (!methods) return "";
  std::istringstream words(*methods);
  std::string before, found;
  for (std::string word; words >> word; before = word) {
    if (before == "time:") found = word;
  }
  return found;
}

// A list of numbers in a text, as attributes have it.
std::vector<double> numbers_in(const std::string& text) {
  std::istringstream words(text);
  std::vector<double> numbers;
  for (double number; words >> number;) numbers.push_back(number);
  return numbers;
}

class Planner {
 public:
  Planner(const FileDescription& d, const Variable& v, int edition) : d_(d), v_(v) {
    plan_.field = v.name;
    plan_.edition = edition;
  }

  Result<Plan> plan() {
    if (v_.type != WEIR_FLOAT32 && v_.type != WEIR_FLOAT64) {
      return wrong("", std::string("its type in files is ") + name_of(v_.type) +
                           ", and GRIB has floating point numbers alone; choose another file type");
    }
    collect();
    const Horizontal h = horizontal_of(d_, v_);
    if (v_.dimensions.empty() || h.nx * h.ny < 1) return wrong("", "it has no grid");
    plan_.type = v_.type;
    plan_.over_time = v_.over_time;
    plan_.points = h.nx * h.ny;
    if (v_.fill) plan_.missing = v_.fill->real;
    for (int dimension : v_.dimensions)
      plan_.lengths.push_back(d_.dimensions[static_cast<size_t>(dimension)].size);
    WEIR_TRY(take_own_keys());
    if (plan_.edition == 2 && !find("centre") && !find("originatingCentre"))
      add("centre", 255);  // table C-11: missing
    take_into(kFirst, &plan_.header);
    WEIR_TRY(add_grid(h, &given_, &plan_));
    WEIR_TRY(add_process());
    add_parameter();
    WEIR_TRY(add_levels(h));
    take_packing();
    for (FormatKey& key : given_) plan_.rest.push_back(std::move(key));
    return std::move(plan_);
  }

 private:
  Status wrong(const std::string& place, const std::string& why) const {
    return {WEIR_E_FORMAT,
            (place.empty() ? "" : place + ": ") + "field " + quoted(v_.name) + ": " + why};
  }
  void add(const char* name, double value) { plan_.header.push_back({name, value, ""}); }

  void give(FormatKey key) {
    const auto same = [&](const FormatKey& one) { return one.name == key.name; };
    std::erase_if(given_, same);
    given_.push_back(std::move(key));
  }

  void collect_attributes(const Attributes& attributes) {
    for (const Attribute& a : attributes) {
      if (a.name.rfind(kPrefix, 0) != 0) continue;
      FormatKey key{a.name.substr(std::string(kPrefix).size()), a.value, ""};
      const std::string* text = std::get_if<std::string>(&key.value);
      if (text && (key.name == "pv" || key.name == "pl")) key.value = numbers_in(*text);
      give(std::move(key));
    }
  }

  void collect() {
    collect_attributes(d_.attributes);
    for (int dimension : v_.dimensions) {
      if (const Variable* axis = coordinate_of(d_, dimension)) {
        Attributes attributes = axis->attributes;
        std::erase_if(attributes, [](const Attribute& a) { return a.name == "GRIB_key"; });
        collect_attributes(attributes);
      }
    }
    collect_attributes(v_.attributes);
    for (const FormatKey& key : d_.keys) give(key);
    for (const FormatKey& key : v_.keys) give(key);
    std::stable_sort(given_.begin(), given_.end(),
                     [](const auto& a, const auto& b) { return a.name < b.name; });
  }

  const FormatKey* find(const std::string& name) const {
    for (const FormatKey& key : given_) {
      if (key.name == name) return &key;
    }
    return nullptr;
  }

  bool take(const std::string& name, FormatKeys* to) {
    const auto at = std::find_if(given_.begin(), given_.end(),
                                 [&](const FormatKey& key) { return key.name == name; });
    if (at == given_.end()) return false;
    to->push_back(std::move(*at));
    given_.erase(at);
    return true;
  }

  template <typename Names>
  void take_into(const Names& names, FormatKeys* to) {
    for (const char* name : names) take(name, to);
  }

  Status take_own_keys() {
    FormatKeys own;
    if (!take("reference_time", &own)) return {};
    const std::string* word = std::get_if<std::string>(&own[0].value);
    if (word && (*word == "record" || *word == "run")) {
      plan_.from_start = *word == "run";
      return {};
    }
    return wrong(own[0].place, "reference_time is " +
                                   (word ? quoted(*word) : std::string("no text")) +
                                   "; expected \"record\" or \"run\"");
  }

  // What was done over time decides the template of the product.
  Status add_process() {
    const std::string operation = operation_of(v_);
    const Operation* found = nullptr;
    for (const Operation& one : kOperations) {
      if (operation == one.method) found = &one;
    }
    if (plan_.edition == 1) {
      if (!take("timeRangeIndicator", &plan_.header))
        add("timeRangeIndicator", found ? found->indicator : 0);
      return {};
    }
    if (!take("productDefinitionTemplateNumber", &plan_.header))
      add("productDefinitionTemplateNumber", found ? 8 : 0);
    if (found && !take("typeOfStatisticalProcessing", &plan_.header))
      add("typeOfStatisticalProcessing", found->processing);
    return {};
  }

  void add_parameter() {
    const std::string* standard = text_of(v_.attributes, "standard_name");
    if (standard) plan_.standard_name = *standard;
    const size_t before = plan_.header.size();
    take_into(kParameter, &plan_.header);
    if (plan_.header.size() > before) return;
    const bool is_latitude = plan_.standard_name == "latitude";
    if (!v_.over_time && (is_latitude || plan_.standard_name == "longitude")) {
      add("discipline", 0);
      add("parameterCategory", 191);
      add("parameterNumber", is_latitude ? 1 : 2);
      plan_.bits = 32;
      for (const char* key : kPacking)
        std::erase_if(given_, [&](const FormatKey& one) { return one.name == key; });
      return;
    }
    plan_.parameters = {{"cfVarName", v_.name, ""}, {"shortName", v_.name, ""}};
    if (standard) plan_.parameters.push_back({"cfName", *standard, ""});
  }

  // The type of level of an axis, by its attributes; "": not known.
  std::string level_type(const Variable& axis, double* factor) const {
    const std::string* units = text_of(axis.attributes, "units");
    *factor = 0;
    for (const Unit& unit : kUnits) {
      if ((units ? *units : "") == unit.name) *factor = unit.factor;
    }
    if (const FormatKey* given = find("typeOfLevel")) {
      const std::string* word = std::get_if<std::string>(&given->value);
      return word ? *word : "";
    }
    const std::string* name = text_of(axis.attributes, "standard_name");
    const bool bounds = text_of(axis.attributes, "bounds") != nullptr;
    for (const LevelType& type : kLevelTypes) {
      if (name && *name == type.standard_name) return bounds && type.layer ? type.layer : type.type;
    }
    if (!name && units && (*units == "Pa" || *factor == 100)) return "isobaricInhPa";
    return "";
  }

  // A number as GRIB2 has it: value times ten to the minus factor.
  static void add_surface(const char* which, double value, FormatKeys* to) {
    int factor = 0;
    double scaled = value;
    const auto whole = [&] {
      return std::abs(scaled - std::nearbyint(scaled)) < 1e-6 * std::max(1.0, std::abs(scaled));
    };
    while (factor < 9 && !whole() && std::abs(scaled) < 1e8)
      scaled = value * std::pow(10, ++factor);
    to->push_back({std::string("scaleFactorOf") + which + "FixedSurface",
                   static_cast<double>(factor), ""});
    to->push_back(
        {std::string("scaledValueOf") + which + "FixedSurface", std::nearbyint(scaled), ""});
  }

  Status level_keys(const Variable& axis, size_t index, const std::string& type, double factor,
                    FormatKeys* to) const {
    const double value = axis.values[index] * factor;
    const bool layer = type.size() > 5 && type.compare(type.size() - 5, 5, "Layer") == 0;
    const std::vector<double>* bounds = nullptr;
    for (const Variable& v : d_.variables) {
      if (v.name == axis.name + "_bnds" && v.values.size() == 2 * axis.values.size())
        bounds = &v.values;
    }
    if (plan_.edition == 2) {
      add_surface("First", layer && bounds ? (*bounds)[2 * index] * factor : value, to);
      if (layer && bounds) add_surface("Second", (*bounds)[2 * index + 1] * factor, to);
      return {};
    }
    double level = type == "isobaricInhPa" ? value / 100 : value;
    if (std::abs(level - std::nearbyint(level)) > 1e-6) {
      return wrong("", "level " + number_text(axis.values[index]) + " of axis " +
                           quoted(axis.name) +
                           " is no whole number, as edition 1 of GRIB has them; use grib2");
    }
    to->push_back({"level", std::nearbyint(level), ""});
    return {};
  }

  // Whole hPa are levels of isobaricInhPa, others of isobaricInPa.
  static bool fits_hPa(const Variable& axis, double factor) {
    for (double value : axis.values) {
      const double hPa = value * factor / 100;
      if (std::abs(hPa - std::nearbyint(hPa)) > 1e-6) return false;
    }
    return true;
  }

  Status add_axis(const Variable& axis, bool* vertical, std::vector<FormatKeys>* to) {
    to->resize(axis.values.size());
    if (const std::string* key = text_of(axis.attributes, "GRIB_key")) {
      for (size_t i = 0; i < axis.values.size(); i++)
        (*to)[i].push_back({*key, axis.values[i], ""});
      return {};
    }
    if (std::exchange(*vertical, true)) {
      return wrong("", "axis " + quoted(axis.name) +
                           " is a second one of levels; give it the attribute GRIB_key, the key "
                           "that its values are (perturbationNumber)");
    }
    double factor = 1;
    std::string type = level_type(axis, &factor);
    if (type.empty()) {
      return wrong("", "axis " + quoted(axis.name) +
                           ": what kind of levels it has is neither known by its standard_name nor "
                           "by units of pressure; set typeOfLevel, or the axis' attribute "
                           "GRIB_typeOfLevel (\"hybrid\", \"heightAboveGround\", ...)");
    }
    if (factor == 0) {
      return wrong("", "axis " + quoted(axis.name) + ": units " +
                           quoted(*text_of(axis.attributes, "units")) +
                           "; expected Pa, hPa, m, cm, K or 1 for levels of GRIB");
    }
    if (type == "isobaricInhPa" && !fits_hPa(axis, factor)) type = "isobaricInPa";
    FormatKeys given;
    take("typeOfLevel", &given);
    plan_.rest.push_back({"typeOfLevel", type, given.empty() ? "" : given[0].place});
    for (size_t i = 0; i < axis.values.size(); i++)
      WEIR_TRY(level_keys(axis, i, type, factor, &(*to)[i]));
    return {};
  }

  Status add_levels(const Horizontal& h) {
    plan_.levels = {{}};
    bool vertical = false;
    for (size_t i = 0; i < h.first; i++) {
      const Variable* axis = coordinate_of(d_, v_.dimensions[i]);
      if (!axis) return wrong("", "a dimension of it has no coordinate");
      std::vector<FormatKeys> of_axis;
      WEIR_TRY(add_axis(*axis, &vertical, &of_axis));
      std::vector<FormatKeys> all;
      for (const FormatKeys& slow : plan_.levels) {
        for (const FormatKeys& fast : of_axis) {
          all.push_back(slow);
          all.back().insert(all.back().end(), fast.begin(), fast.end());
        }
      }
      plan_.levels = std::move(all);
    }
    take("typeOfLevel", &plan_.rest);
    take("level", &plan_.rest);
    FormatKeys pv;
    if (!take("pv", &pv)) return {};
    const auto* list = std::get_if<std::vector<double>>(&pv[0].value);
    if (!list || list->empty() || list->size() % 2 != 0) {
      return wrong(pv[0].place, "pv is no list of coefficients: expected all a, then all b, as many "
                                "of each");
    }
    // Coefficients belong to levels of the model alone.
    if (!vertical) return {};
    plan_.rest.push_back({"PVPresent", 1.0, ""});
    plan_.rest.push_back(std::move(pv[0]));
    return {};
  }

  void take_packing() {
    take_into(kPacking, &plan_.packing);
    std::string type = "grid_simple";
    bool own = plan_.edition == 2;
    for (const FormatKey& key : plan_.packing) {
      const std::string* text = std::get_if<std::string>(&key.value);
      const double* number = std::get_if<double>(&key.value);
      if (key.name == "packingType" && text) type = *text;
      if (key.name == "bitsPerValue" && number) plan_.bits = static_cast<int>(*number);
      // With a decimal scale ecCodes decides, and what belongs to other packings is theirs.
      own &= key.name == "packingType" || key.name == "bitsPerValue" ||
             (key.name == "decimalScaleFactor" && number && *number == 0);
    }
    own &= plan_.bits >= 1 && plan_.bits <= 32;
    plan_.packs = own && type == "grid_simple"  ? Packing::kSimple
                  : own && type == "grid_ccsds" ? Packing::kCcsds
                                                : Packing::kOther;
    const bool says_bits = std::any_of(plan_.packing.begin(), plan_.packing.end(),
                                       [](const auto& key) { return key.name == "bitsPerValue"; });
    if (!says_bits && type.find("ieee") == std::string::npos)
      plan_.packing.push_back({"bitsPerValue", static_cast<double>(plan_.bits), ""});
  }

  const FileDescription& d_;
  const Variable& v_;
  Plan plan_;
  FormatKeys given_;
};

}  // namespace

bool is_field(const FileDescription& description, int variable) {
  const Variable& v = description.variables[static_cast<size_t>(variable)];
  return v.values.empty() && v.name != "time" && v.name != "time_bnds";
}

Result<Plan> plan_of(const FileDescription& description, int variable, int edition) {
  return Planner(description, description.variables[static_cast<size_t>(variable)], edition).plan();
}

}  // namespace weir::output::grib
