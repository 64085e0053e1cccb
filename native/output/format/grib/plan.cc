// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/plan.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <sstream>

#include "output/format/grib/grid.h"
#include "output/format/grib/levels.h"
#include "output/format/grib/names.h"
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
constexpr const char* kPacking[] = {"packingType",    "bitsPerValue", "precision",
                                    "ccsdsBlockSize", "ccsdsRsi",     "ccsdsFlags"};
// The packings that are written, by edition; names with more behind grid_second_order are, too.
constexpr const char* kOfGrids[] = {"grid_simple",   "grid_ccsds",
                                    "grid_ieee",     "grid_second_order",
                                    "grid_complex",  "grid_complex_spatial_differencing",
                                    "grid_jpeg",     "grid_simple_log_preprocessing",
                                    "grid_simple_matrix"};
constexpr const char* kOfGrids1[] = {"grid_simple", "grid_second_order", "grid_ieee",
                                     "grid_simple_matrix"};
constexpr const char* kOfHarmonics[] = {"spectral_complex", "spectral_simple", "spectral_ieee"};

constexpr const char* kScanning[] = {"scanningMode", "iScansNegatively", "jScansPositively",
                                     "jPointsAreConsecutive", "alternativeRowScanning"};

// Set by the encoder, for each message: ecCodes forgets what was given before.
constexpr const char* kScales[] = {"decimalScaleFactor", "binaryScaleFactor", "referenceValue"};

struct Operation {
  const char* method;
  int processing;  // GRIB2, table 4.10
  int indicator;   // GRIB1, table 5
};
constexpr Operation kOperations[] = {
    {"mean", 0, 3}, {"sum", 1, 4}, {"maximum", 2, 2}, {"minimum", 3, 2}};

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

class Planner {
 public:
  Planner(const FileDescription& d, const Variable& v, int edition) : d_(d), v_(v) {
    plan_.field = v.name;
    plan_.edition = edition;
  }

  // Whether the keys that are given say where the points of its grid are.
  bool grid_says_points() {
    collect();
    const FormatKey* type = find("gridType");
    const std::string* word = type ? std::get_if<std::string>(&type->value) : nullptr;
    return find("gridName") || find("pl") || (word && *word != "unstructured_grid");
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
    plan_.has_scanning = std::ranges::any_of(kScanning, [&](const char* key) { return find(key); });
    if (plan_.edition == 2 && !find("centre") && !find("originatingCentre"))
      add("centre", 255);  // table C-11: missing
    take_into(kFirst, &plan_.header);
    WEIR_TRY(add_grid(h, &given_, &plan_));
    WEIR_TRY(add_process());
    add_parameter();
    WEIR_TRY(add_levels(h));
    plan_.row = h.nx;
    for (const char* scale : kScales) {
      if (const FormatKey* key = find(scale)) {
        return wrong(key->place, key->name + " follows from the values of each message and "
                                             "bitsPerValue; give that, or keep_information");
      }
    }
    WEIR_TRY(take_packing());
    WEIR_TRY(add_rounding());
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
      if (const Variable* axis = d_.coordinate_of(dimension)) {
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

  // "dataType=fc,expver=0001", as grib_copy -w takes it.
  Status take_where() {
    FormatKeys own;
    if (!take("where", &own)) return {};
    const std::string* text = std::get_if<std::string>(&own[0].value);
    std::istringstream pairs(text ? *text : "");
    for (std::string pair; std::getline(pairs, pair, ',');) {
      const size_t at = pair.find('=');
      if (at == 0 || at == std::string::npos || at + 1 == pair.size()) {
        plan_.where.clear();
        break;
      }
      plan_.where.emplace_back(pair.substr(0, at), pair.substr(at + 1));
    }
    if (!plan_.where.empty()) return {};
    return wrong(own[0].place, "where is " + (text ? quoted(*text) : std::string("no text")) +
                                   "; expected keys of ecCodes and their values, \"dataType=fc\" "
                                   "or \"dataType=fc,expver=0001\"");
  }

  Status take_own_keys() {
    WEIR_TRY(take_where());
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

  bool is_a_member() const { return find("perturbationNumber") || find("number"); }

  // How many an axis of members of an ensemble has; 0: there is none.
  int64_t members() const {
    for (int dimension : v_.dimensions) {
      const Variable* axis = d_.coordinate_of(dimension);
      const std::string* key = axis ? text_of(axis->attributes, "GRIB_key") : nullptr;
      if (key && (*key == "perturbationNumber" || *key == "number"))
        return static_cast<int64_t>(axis->values.size());
    }
    return 0;
  }

  // What was done over time decides the template of the product.
  Status add_process() {
    const std::string operation = operation_of(v_);
    const Operation* found = nullptr;
    for (const Operation& one : kOperations) {
      if (operation == one.method) found = &one;
    }
    if (plan_.edition == 1) {
      if (take("timeRangeIndicator", &plan_.header)) return {};
      add("timeRangeIndicator", found ? found->indicator : 0);
      plan_.of_minimum = operation == "minimum";
      return {};
    }
    const bool of_ensemble = members() > 0 || is_a_member();
    if (!take("productDefinitionTemplateNumber", &plan_.header))
      add("productDefinitionTemplateNumber", found ? (of_ensemble ? 11 : 8) : of_ensemble);
    if (members() > 0 && !find("numberOfForecastsInEnsemble"))
      add("numberOfForecastsInEnsemble", static_cast<double>(members()));
    if (found && !take("typeOfStatisticalProcessing", &plan_.header))
      add("typeOfStatisticalProcessing", found->processing);
    return {};
  }

  void add_parameter() {
    const std::string* standard = text_of(v_.attributes, "standard_name");
    if (standard) plan_.standard_name = *standard;
    if (const std::string* units = text_of(v_.attributes, "units")) plan_.units = *units;
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
    if (const int near = near_surface(v_.name, plan_.standard_name); near != 0 && !on_levels()) {
      plan_.parameters = {{"paramId", static_cast<double>(near), ""}};
      return;
    }
    plan_.usual_name = usual_name(v_.name);
    plan_.parameters = {{"cfVarName", v_.name, ""}, {"shortName", v_.name, ""}};
    if (const int own = parameter_of_standard_name(plan_.standard_name))
      plan_.parameters.push_back({"paramId", static_cast<double>(own), ""});
    else if (standard)
      plan_.parameters.push_back({"cfName", *standard, ""});
  }

  // Whether an axis or a key says on which level it is.
  bool on_levels() const {
    if (find("typeOfLevel") || find("level")) return true;
    return std::any_of(v_.dimensions.begin(), v_.dimensions.end(), [&](int dimension) {
      const Variable* axis = d_.coordinate_of(dimension);
      const std::string* name = axis ? text_of(axis->attributes, "standard_name") : nullptr;
      const bool horizontal = name && (*name == "latitude" || *name == "longitude");
      return axis && !horizontal && !text_of(axis->attributes, "GRIB_key");
    });
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
    Result<Levels> levels = levels_of(d_, axis, plan_.edition, find("typeOfLevel"));
    if (!levels.ok()) return wrong("", "axis " + quoted(axis.name) + levels.status().message());
    FormatKeys given;
    take("typeOfLevel", &given);
    plan_.rest.push_back({"typeOfLevel", levels->type, given.empty() ? "" : given[0].place});
    vertical_ = vertical_of(axis, levels->type);
    for (size_t i = 0; i < axis.values.size(); i++) {
      const FormatKeys& keys = levels->levels[i];
      (*to)[i].insert((*to)[i].end(), keys.begin(), keys.end());
    }
    return {};
  }

  Status add_levels(const Horizontal& h) {
    plan_.levels = {{}};
    bool vertical = false;
    for (size_t i = 0; i < h.first; i++) {
      const Variable* axis = d_.coordinate_of(v_.dimensions[i]);
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
    // What a message of edition 1 begins as is at 500 hPa.
    const bool is_at_500 = plan_.edition == 1 && !vertical;
    if (is_at_500 && !find("typeOfLevel")) plan_.rest.push_back({"typeOfLevel", "surface", ""});
    take("typeOfLevel", &plan_.rest);
    if (is_at_500 && !find("level") && !find("topLevel") && !find("bottomLevel"))
      plan_.rest.push_back({"level", 0.0, ""});
    take("level", &plan_.rest);
    FormatKeys pv;
    take("pv", &pv);
    const Coefficients has{pv.empty() ? nullptr : &pv[0], plan_.edition};
    if (const std::string why = check_coefficients(vertical_, has); !why.empty())
      return wrong(pv.empty() ? "" : pv[0].place, why);
    // Coefficients belong to levels of the model alone.
    if (pv.empty() || !vertical_.of_model) return {};
    plan_.rest.push_back({"PVPresent", 1.0, ""});
    plan_.rest.push_back(std::move(pv[0]));
    return {};
  }

  // Of the field's kind. With others the library ends the process, takes another packing, or fails
  // at the first message alone.
  std::vector<std::string> packings() const {
    if (plan_.sample != "GRIB") return {std::begin(kOfHarmonics), std::end(kOfHarmonics)};
    if (plan_.edition == 1) return {std::begin(kOfGrids1), std::end(kOfGrids1)};
    return {std::begin(kOfGrids), std::end(kOfGrids)};
  }

  bool is_written(const std::string& packing) const {
    const std::vector<std::string> all = packings();
    return std::find(all.begin(), all.end(), packing) != all.end() ||
           (plan_.sample == "GRIB" && packing.rfind("grid_second_order_", 0) == 0);
  }

  Status check_packing(const FormatKey& key) const {
    const std::string* type = std::get_if<std::string>(&key.value);
    const double* bits = std::get_if<double>(&key.value);
    if (key.name == "packingType" && type && !is_written(*type)) {
      const std::vector<std::string> all = packings();
      const char* kind = plan_.sample == "GRIB" ? "a grid" : "spherical harmonics";
      return wrong(key.place, "packingType " + quoted(*type) + " is not written in edition " +
                                  std::to_string(plan_.edition) + " of GRIB for " + kind +
                                  "; expected " + one_of(all) + did_you_mean(*type, all));
    }
    if (key.name == "bitsPerValue" &&
        !(bits && *bits >= 1 && *bits <= 32 && *bits == std::floor(*bits))) {
      return wrong(key.place, "bitsPerValue is " + (bits ? number_text(*bits) : "no number") +
                                  "; expected a whole number from 1 to 32");
    }
    return {};
  }

  Status take_packing() {
    take_into(kPacking, &plan_.packing);
    const bool spectral = plan_.sample != "GRIB";
    std::string type = spectral ? "spectral_complex" : "grid_simple";
    bool own = plan_.edition == 2;
    for (const FormatKey& key : plan_.packing) {
      WEIR_TRY(check_packing(key));
      const std::string* text = std::get_if<std::string>(&key.value);
      const double* number = std::get_if<double>(&key.value);
      if (key.name == "packingType" && text) type = *text;
      if (key.name == "bitsPerValue" && number) plan_.bits = static_cast<int>(*number);
      // What belongs to other packings is theirs.
      own &= key.name != "precision";
    }
    own &= plan_.bits >= 1 && plan_.bits <= 32;
    plan_.packs = own && type == "grid_simple"  ? Packing::kSimple
                  : own && type == "grid_ccsds" ? Packing::kCcsds
                                                : Packing::kOther;
    says_bits_ = std::any_of(plan_.packing.begin(), plan_.packing.end(),
                                       [](const auto& key) { return key.name == "bitsPerValue"; });
    if (!says_bits_ && type.find("ieee") == std::string::npos)
      plan_.packing.push_back({"bitsPerValue", static_cast<double>(plan_.bits), ""});
    return {};
  }

  // Packed values are whole numbers: what is kept of the information are leading bits of those.
  Status add_rounding() {
    if (!v_.rounding.any()) return {};
    if (v_.rounding.bits > 0) {
      return wrong("", "keep_bits are bits of a mantissa, and GRIB packs whole numbers; use "
                       "keep_information, or grib = { bitsPerValue = 12 }");
    }
    if (plan_.packs == Packing::kOther) {
      return wrong("", "keep_information chooses the bits of grid_simple and grid_ccsds in edition "
                       "2 of GRIB; use these, or leave it out");
    }
    constexpr int kMostBits = 24;
    plan_.information = v_.rounding.information;
    if (!says_bits_) plan_.bits = kMostBits;
    return {};
  }

  const FileDescription& d_;
  const Variable& v_;
  bool says_bits_ = false;
  Vertical vertical_;
  Plan plan_;
  FormatKeys given_;
};

const double* number_of(const FormatKeys& keys, const char* name) {
  for (const FormatKey& key : keys) {
    if (key.name == name) return std::get_if<double>(&key.value);
  }
  return nullptr;
}

}  // namespace

int64_t Plan::parameter() const {
  const double* number = number_of(header, "paramId");
  if (number == nullptr && parameters.size() == 1) number = number_of(parameters, "paramId");
  return number ? static_cast<int64_t>(*number) : 0;
}

std::optional<int64_t> Plan::member(size_t level) const {
  for (const FormatKeys* keys : {&levels[level], &rest, &header}) {
    for (const char* name : {"perturbationNumber", "number"}) {
      if (const double* number = number_of(*keys, name)) return static_cast<int64_t>(*number);
    }
  }
  return std::nullopt;
}

bool is_field(const FileDescription& description, int variable, int edition) {
  const Variable& v = description.variables[static_cast<size_t>(variable)];
  if (!v.values.empty() || v.name == "time" || v.name == "time_bnds") return false;
  if (v.over_time) return true;
  // Longitudes or latitudes of each point: where the grids of all fields do not say them.
  return edition == 2 &&
         std::ranges::any_of(description.variables, [&](const Variable& field) {
           return field.over_time && field.dimensions.size() >= v.dimensions.size() &&
                  std::ranges::equal(v.dimensions, std::span(field.dimensions).last(
                                                       v.dimensions.size())) &&
                  !Planner(description, field, edition).grid_says_points();
         });
}

Result<Plan> plan_of(const FileDescription& description, int variable, int edition) {
  return Planner(description, description.variables[static_cast<size_t>(variable)], edition).plan();
}

}  // namespace weir::output::grib
