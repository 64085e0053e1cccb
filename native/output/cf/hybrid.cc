// SPDX-License-Identifier: Apache-2.0
#include "output/cf/hybrid.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "output/model/text.h"
#include "output/model/units.h"

namespace weir::output {
namespace {

constexpr const char* kList = "GRIB_pv";
constexpr const char* kName = "atmosphere_hybrid_sigma_pressure_coordinate";
constexpr const char* kExpected =
    "expected all a (Pa), then all b, of all interfaces of the model: 2 (n + 1) numbers for n "
    "levels";

bool is_hybrid(const Axis& axis) {
  const std::string* name = text_of(axis.attributes, "standard_name");
  return name && *name == kName;
}

const Attribute* find(const Attributes& attributes, const char* name) {
  for (const Attribute& a : attributes) {
    if (a.name == name) return &a;
  }
  return nullptr;
}

bool has_axis(const Field& field, int axis) {
  return std::find(field.axes.begin(), field.axes.end(), axis) != field.axes.end();
}

class Finder {
 public:
  Finder(const Catalogue& catalogue, const Stream& stream, int axis)
      : catalogue_(catalogue), stream_(stream), index_(axis), axis_(catalogue.axes[axis]) {}

  Result<std::optional<Hybrid>> find_all() {
    if (!is_hybrid(axis_)) return std::optional<Hybrid>();
    const Attribute* list = nullptr;
    WEIR_TRY(find_list(&list));
    if (list == nullptr) return std::optional<Hybrid>();
    WEIR_TRY(split(*list));
    WEIR_TRY(place());
    WEIR_TRY(find_surface_pressure());
    name();
    return std::optional<Hybrid>(std::move(hybrid_));
  }

 private:
  Status wrong(const std::string& why) const {
    return {WEIR_E_ARGUMENT, "stream " + quoted(stream_.name) + ", axis " + quoted(axis_.name) +
                                 ": " + why};
  }

  template <typename Use>
  void each_field(Use use) const {
    for (const StreamField& f : stream_.fields) {
      const Field& field = catalogue_.fields[f.field];
      if (has_axis(field, index_)) use(field);
    }
  }

  // As in GRIB: what a field says goes before what the axis says, and that before the context.
  Status find_list(const Attribute** found) const {
    const Attribute* common = find(axis_.attributes, kList);
    if (common == nullptr) common = find(catalogue_.attributes, kList);
    const Field* owner = nullptr;
    Status status;
    each_field([&](const Field& field) {
      const Attribute* own = find(field.attributes, kList);
      if (own == nullptr) own = common;
      if (own == nullptr) return;
      if (*found && (*found)->value != own->value && status.ok()) {
        status = wrong("fields " + quoted(owner->name) + " and " + quoted(field.name) +
                       " have different " + kList + "; give it to the axis alone");
      }
      owner = &field;
      *found = own;
    });
    return status;
  }

  Status split(const Attribute& list) {
    std::vector<double> numbers;
    bool is_list = true;
    if (const auto* text = std::get_if<std::string>(&list.value))
      numbers = numbers_in(*text, &is_list);
    else if (const auto* given = std::get_if<std::vector<double>>(&list.value))
      numbers = *given;
    if (!is_list || numbers.size() < 4 || numbers.size() % 2 != 0)
      return wrong(std::string(kList) + " is no list of coefficients: " + kExpected);
    const auto half = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
    hybrid_.a.assign(numbers.begin(), half);
    hybrid_.b.assign(half, numbers.end());
    return {};
  }

  // Which layer or interface each value of the axis is.
  Status place() {
    const std::vector<double>& values = axis_.values;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const double layers = static_cast<double>(hybrid_.a.size() - 1);
    const auto all = [&](double fraction) {
      return std::all_of(values.begin(), values.end(),
                         [&](double v) { return v - std::floor(v) == fraction; });
    };
    hybrid_.is_numbered = all(0) || all(0.5);
    if (!hybrid_.is_numbered) return place_by_order();
    double first = 1;
    if (all(0.5)) first = 0.5;
    else if (*least == 0) first = 0;
    hybrid_.at_interfaces = first != 1 || *most == layers + 1;
    if (*least < first || *most > first + layers) {
      return wrong("it has level " + number_text(*least < first ? *least : *most) + ", and " +
                   kList + " has " + std::to_string(hybrid_.a.size() - 1) + " levels: " +
                   kExpected);
    }
    for (double v : values) hybrid_.places.push_back(static_cast<size_t>(v - first));
    return {};
  }

  // Values of the coordinate itself, which grow with pressure: of all levels, or it is not known
  // which they are.
  Status place_by_order() {
    const size_t count = axis_.values.size(), interfaces = hybrid_.a.size();
    if (count != interfaces && count != interfaces - 1) {
      return wrong("its " + std::to_string(count) + " values are no numbers of levels, and " +
                   kList + " has " + std::to_string(interfaces - 1) +
                   " levels; expected a value for each of them, or whole numbers from 1");
    }
    constexpr double kNominal = 101325;
    const auto grows = [](double from, double until) { return until > from; };
    const bool reversed = grows(axis_.values.front(), axis_.values.back()) !=
                          grows(hybrid_.a.front() + hybrid_.b.front() * kNominal,
                                hybrid_.a.back() + hybrid_.b.back() * kNominal);
    hybrid_.at_interfaces = count == interfaces;
    for (size_t i = 0; i < count; i++) hybrid_.places.push_back(reversed ? count - 1 - i : i);
    return {};
  }

  // On the grid of all fields of the axis, without a dimension that one of them has not.
  bool fits(const Field& pressure) const {
    const int grid = catalogue_.decompositions[pressure.decomposition].grid;
    bool fine = true;
    each_field([&](const Field& field) {
      fine = fine && catalogue_.decompositions[field.decomposition].grid == grid &&
             std::all_of(pressure.axes.begin(), pressure.axes.end(),
                         [&](int axis) { return axis != index_ && has_axis(field, axis); });
    });
    return fine;
  }

  // What the axis' attribute formula_terms names, else by the standard name.
  Status find_surface_pressure() {
    const std::string* terms = text_of(axis_.attributes, "formula_terms");
    std::string named, term, rest;
    if (terms) {
      std::istringstream words(*terms);
      if (!(words >> term >> named) || term != "ps:" || words >> rest) {
        return wrong("formula_terms is " + quoted(*terms) +
                     "; expected 'ps: NAME', the field of surface pressure: the other terms are " +
                     "written from " + kList);
      }
      const auto& fields = catalogue_.fields;
      if (std::none_of(fields.begin(), fields.end(),
                       [&](const Field& field) { return field.name == named; }))
        return wrong("formula_terms names " + quoted(named) + ", which is no field of the program");
    }
    for (const StreamField& f : stream_.fields) {
      const Field& field = catalogue_.fields[f.field];
      const std::string* name = text_of(field.attributes, "standard_name");
      if (named.empty() ? !name || *name != "surface_air_pressure" || !fits(field)
                        : field.name != named)
        continue;
      return take(field);
    }
    return {};
  }

  Status take(const Field& field) {
    const std::string what = "surface pressure " + quoted(field.name);
    if (!fits(field)) {
      return wrong(what + " is not on the grid of all fields of this axis, or has another axis; "
                          "give fields of other grids an axis of their own");
    }
    const std::string* units = text_of(field.attributes, "units");
    if (!units || !same_units(*units, "Pa").value_or(false)) {
      return wrong(what + " is in " + quoted(units ? *units : "") +
                   ", and the coefficients a are in Pa; give it in Pa");
    }
    hybrid_.surface_pressure = field.name;
    return {};
  }

  void name() {
    std::vector<int> axes;
    bool other_kind = false;
    for (const StreamField& f : stream_.fields) {
      for (int axis : catalogue_.fields[f.field].axes) {
        if (is_hybrid(catalogue_.axes[axis]) &&
            std::find(axes.begin(), axes.end(), axis) == axes.end())
          axes.push_back(axis);
      }
    }
    int like_this = 0;
    for (int axis : axes) {
      Finder other(catalogue_, stream_, axis);
      const Attribute* list = nullptr;
      const bool placed = axis != index_ && other.find_list(&list).ok() && list != nullptr &&
                          other.split(*list).ok() && other.place().ok();
      if (!placed) continue;
      (other.hybrid_.at_interfaces == hybrid_.at_interfaces ? like_this++ : other_kind = true);
    }
    if (like_this > 0) hybrid_.suffix = "_" + axis_.name;
    hybrid_.has_interfaces =
        !hybrid_.at_interfaces && hybrid_.is_contiguous() && like_this == 0 && !other_kind;
  }

  const Catalogue& catalogue_;
  const Stream& stream_;
  const int index_;
  const Axis& axis_;
  Hybrid hybrid_;
};

void set_default(Attributes& attributes, const char* name, const std::string& value) {
  if (!find(attributes, name)) attributes.push_back({name, value});
}

std::string coefficient(const Hybrid& hybrid, char term, bool of_bounds) {
  return std::string("hy") + term + (hybrid.at_interfaces ? "i" : "m") + hybrid.suffix +
         (of_bounds ? "_bnds" : "");
}

}  // namespace

bool Hybrid::is_contiguous() const {
  if (places.size() < 2) return true;
  const bool grows = places[1] > places[0];
  for (size_t i = 1; i < places.size(); i++) {
    if (places[i] != (grows ? places[i - 1] + 1 : places[i - 1] - 1)) return false;
  }
  return true;
}

Result<std::optional<Hybrid>> hybrid_of(const Catalogue& catalogue, const Stream& stream,
                                        int axis) {
  return Finder(catalogue, stream, axis).find_all();
}

void complete(const Hybrid& hybrid, Axis& axis) {
  Attributes& attributes = axis.attributes;
  std::erase_if(attributes, [](const Attribute& a) {
    return a.name == kList || a.name == "formula_terms";
  });
  set_default(attributes, "long_name",
              std::string("hybrid level at layer ") +
                  (hybrid.at_interfaces ? "interfaces" : "midpoints"));
  const double last = hybrid.a.back() + hybrid.b.back() * 1e5,
               first = hybrid.a.front() + hybrid.b.front() * 1e5;
  set_default(attributes, "positive", !hybrid.is_numbered || last > first ? "down" : "up");
  if (hybrid.surface_pressure.empty()) {
    const bool is_whole = hybrid.is_numbered && axis.values[0] == std::floor(axis.values[0]);
    std::erase_if(attributes, [&](Attribute& a) {
      if (a.name != "standard_name") return false;
      a.value = "model_level_number";
      return !is_whole;
    });
  } else {
    attributes.push_back({"formula_terms", formula_terms(hybrid, false)});
  }
  if (!axis.bounds.empty() || hybrid.at_interfaces || !hybrid.is_numbered ||
      !hybrid.is_contiguous())
    return;
  const double half = axis.values.size() > 1 && axis.values[1] < axis.values[0] ? -0.5 : 0.5;
  for (double value : axis.values)
    axis.bounds.insert(axis.bounds.end(), {value - half, value + half});
}

std::string formula_terms(const Hybrid& hybrid, bool of_bounds) {
  if (hybrid.surface_pressure.empty()) return "";
  return "ap: " + coefficient(hybrid, 'a', of_bounds) + " b: " +
         coefficient(hybrid, 'b', of_bounds) + " ps: " + hybrid.surface_pressure;
}

void add_coefficients(const Hybrid& hybrid, int dimension, int bounds, FileDescription& file) {
  const bool down = hybrid.places.front() > hybrid.places.back();
  const size_t above = hybrid.at_interfaces ? 0 : 1;
  int interfaces = -1;
  if (hybrid.has_interfaces) {
    file.dimensions.push_back({"nhyi", static_cast<int64_t>(hybrid.places.size() + 1)});
    interfaces = static_cast<int>(file.dimensions.size()) - 1;
  }
  for (const char term : {'a', 'b'}) {
    const std::vector<double>& all = term == 'a' ? hybrid.a : hybrid.b;
    const auto add = [&](const std::string& name, std::vector<int> dimensions, const char* where) {
      Variable& v = file.variables.emplace_back();
      v.name = name;
      v.dimensions = std::move(dimensions);
      v.attributes = {{"long_name", std::string("hybrid ") + (term == 'a' ? "A" : "B") +
                                        " coefficient at layer " + where},
                      {"units", std::string(term == 'a' ? "Pa" : "1")}};
      return &v;
    };
    Variable* levels = add(coefficient(hybrid, term, false), {dimension},
                           hybrid.at_interfaces ? "interfaces" : "midpoints");
    for (size_t at : hybrid.places)
      levels->values.push_back((all[at] + all[at + above]) / 2);
    if (bounds >= 0 && !hybrid.at_interfaces) {
      levels->attributes.push_back({"bounds", coefficient(hybrid, term, true)});
      Variable* of_layers =
          add(coefficient(hybrid, term, true), {dimension, bounds}, "interfaces");
      for (size_t at : hybrid.places) {
        of_layers->values.push_back(all[down ? at + 1 : at]);
        of_layers->values.push_back(all[down ? at : at + 1]);
      }
    }
    if (interfaces < 0) continue;
    Variable* between =
        add(std::string("hy") + term + "i", {interfaces}, "interfaces");
    between->values.push_back(all[hybrid.places.front() + (down ? 1 : 0)]);
    for (size_t at : hybrid.places) between->values.push_back(all[down ? at : at + 1]);
  }
}

}  // namespace weir::output
