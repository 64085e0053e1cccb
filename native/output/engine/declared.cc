// SPDX-License-Identifier: Apache-2.0
#include "output/engine/declared.h"

#include <algorithm>
#include <cmath>

#include "output/engine/convert.h"
#include "output/model/text.h"
#include "output/model/units.h"

namespace weir::output {
namespace {

// Of levels and distances, as share of the value: texts and single precision round.
constexpr double kSameShare = 1e-5;

// "degrees_east", "degree_N", "degrees"; not those of a temperature.
bool is_angle(const std::string& units) {
  return units.rfind("degree", 0) == 0 &&
         (!knows_units(units) || same_units(units, "degrees").value_or(false));
}

// A fine grid has neighbours that are closer than kSameDegrees.
double tolerance_of(const std::vector<double>& expected) {
  double most = 0, step = 10 * kSameDegrees;
  for (size_t i = 0; i < expected.size(); i++) {
    most = std::max(most, std::abs(expected[i]));
    if (i > 0) step = std::min(step, std::abs(expected[i] - expected[i - 1]));
  }
  return std::max(step / 10, most * 0x1p-23);
}

// Turns of longitudes are the same place.
class Same {
 public:
  Same(const std::vector<double>& expected, const std::string& units)
      : around_(units == "degrees_east"),
        is_angle_(is_angle(units)),
        degrees_(is_angle_ ? tolerance_of(expected) : 0) {}

  bool operator()(double found, double expected) const {
    if (std::isnan(found) || std::isnan(expected)) return std::isnan(found) == std::isnan(expected);
    const double apart = found - expected;
    if (is_angle_)
      return std::abs(around_ ? std::remainder(apart, 360) : apart) <= degrees_;
    return std::abs(apart) <= kSameShare * std::max(std::abs(found), std::abs(expected));
  }

 private:
  const bool around_, is_angle_;
  const double degrees_;
};

Result<std::vector<double>> read_values(Reader& reader, const std::string& name,
                                        const Found& found) {
  const int64_t count = found.elements();
  std::vector<char> raw(static_cast<size_t>(count) * size_of(found.type));
  WEIR_TRY(reader.read(name, 0, 0, count, raw.data()));
  std::vector<double> values;
  const Packing packing = found.packing.value_or(Packing{1, 0});
  for (int64_t i = 0; i < count; i++)
    values.push_back(element_at(found.type, raw.data(), i) * packing.scale + packing.offset);
  return values;
}

std::string units_differ(const std::string& found, const std::string& expected) {
  if (found.empty() || expected.empty() || same_units(found, expected).value_or(false)) return "";
  if (is_angle(found) && is_angle(expected)) return "";
  return "is in " + quoted(found) + ", expected " + quoted(expected);
}

std::string values_differ(const std::string& name, const std::vector<double>& found,
                          const std::vector<double>& expected, const Same& same) {
  size_t first = expected.size(), many = 0;
  bool is_turned = true;
  for (size_t i = 0; i < expected.size(); i++) {
    is_turned = is_turned && same(found[expected.size() - 1 - i], expected[i]);
    if (same(found[i], expected[i])) continue;
    if (many++ == 0) first = i;
  }
  if (many == 0) return "";
  if (is_turned) return "is in the opposite order (turn the file round: ncpdq -a -" + name + ")";
  return "has " + number_text(found[first]) + " at index " + std::to_string(first) +
         ", expected " + number_text(expected[first]) + " (" + std::to_string(many) + " of " +
         std::to_string(expected.size()) + " differ)";
}

}  // namespace

Status check_declared(Reader& reader, const FileDescription& description, int variable,
                      const Found& found, const std::string& what) {
  const Variable& v = description.variables[static_cast<size_t>(variable)];
  const auto units_of = [](const Variable& of) {
    const std::string* text = text_of(of.attributes, "units");
    return text ? *text : std::string();
  };
  if (const std::string differ = units_differ(found.units, units_of(v)); !differ.empty()) {
    return {WEIR_E_FORMAT, what + " " + differ +
                               " as the field is declared; declare the units of the file, or "
                               "convert it first (ncap2, cdo)"};
  }
  for (size_t d = 0; d < found.dimensions.size() && d < v.dimensions.size(); d++) {
    const Variable* declared = description.coordinate_of(v.dimensions[d]);
    const std::string& name = found.dimensions[d];
    if (declared == nullptr || name.empty()) continue;
    const Result<Found> coordinate = reader.find(name);
    if (!coordinate.ok() || (*coordinate).over_time ||
        (*coordinate).lengths != std::vector<int64_t>{found.lengths[d]})
      continue;
    const std::string units = units_of(*declared);
    std::string differ = units_differ((*coordinate).units, units);
    if (differ.empty()) {
      const Result<std::vector<double>> values = read_values(reader, name, *coordinate);
      if (!values.ok()) return values.status();
      differ = values_differ(name, *values, declared->values, Same(declared->values, units));
    }
    if (differ.empty()) continue;
    return {WEIR_E_FORMAT, what + " is not where the field is: coordinate " + quoted(name) + " " +
                               differ + "; declare the grid and axes of the file, or bring the "
                               "file to the field's first (cdo remapbil, cdo intlevel)"};
  }
  return {};
}

}  // namespace weir::output
