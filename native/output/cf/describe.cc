// SPDX-License-Identifier: Apache-2.0
#include "output/cf/describe.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "output/cf/hybrid.h"
#include "output/cf/methods.h"
#include "output/model/check.h"
#include "output/model/packing.h"
#include "output/model/text.h"

namespace weir::output {
namespace {

// Dimensions of a grid in the file, slowest first, and the variables that say where its points are,
// when those need naming in fields.
struct Horizontal {
  std::vector<int> dimensions;
  std::string coordinates;
};

class Describer {
 public:
  Describer(const Catalogue& catalogue, const Stream& stream, bool has_names)
      : catalogue_(catalogue), stream_(stream), has_names_(has_names) {}

  Result<StreamFile> describe() {
    for (const StreamField& f : stream_.fields)
      note_grid(catalogue_.decompositions[catalogue_.fields[f.field].decomposition].grid);
    for (int grid : grids_) add_grid(grid);
    for (const StreamField& f : stream_.fields) {
      for (int axis : catalogue_.fields[f.field].axes) WEIR_TRY(add_axis(axis));
    }
    add_time();
    for (int grid : grids_) add_lonlat(grid);
    for (const StreamField& f : stream_.fields) add_mappings(catalogue_.fields[f.field]);
    for (const StreamField& f : stream_.fields) add_field(f);
    for (int f : out_.fields) drop_dangling(out_.file.variables[static_cast<size_t>(f)].attributes);
    add_global();
    WEIR_TRY(check_names());
    return std::move(out_);
  }

 private:
  void note_grid(int grid) {
    if (std::find(grids_.begin(), grids_.end(), grid) == grids_.end()) grids_.push_back(grid);
  }

  int add_dimension(const std::string& name, int64_t size) {
    out_.file.dimensions.push_back({name, size});
    return static_cast<int>(out_.file.dimensions.size()) - 1;
  }

  int add_variable(Variable variable) {
    out_.file.variables.push_back(std::move(variable));
    return static_cast<int>(out_.file.variables.size()) - 1;
  }

  std::string in_grid(const std::string& name, int grid) const {
    return grids_.size() == 1 ? name : name + "_" + catalogue_.grids[grid].name;
  }

  int add_coordinate(const std::string& name, const std::vector<double>& values,
                     Attributes attributes) {
    const int dimension = add_dimension(name, static_cast<int64_t>(values.size()));
    Variable v;
    v.name = name;
    v.dimensions = {dimension};
    v.attributes = std::move(attributes);
    v.values = values;
    add_variable(std::move(v));
    return dimension;
  }

  void add_grid(int index) {
    const Grid& grid = catalogue_.grids[index];
    std::vector<int>& d = horizontal_[index].dimensions;
    switch (grid.kind) {
      case GridKind::kLonLat:
      case GridKind::kGaussian: {
        d.push_back(add_coordinate(in_grid("lat", index), grid.y, latitude("Y")));
        d.push_back(add_coordinate(in_grid("lon", index), grid.x, longitude("X")));
        break;
      }
      case GridKind::kPlane: {
        d.push_back(add_coordinate(in_grid("y", index), grid.y, distance(grid.mapping, "y")));
        d.push_back(add_coordinate(in_grid("x", index), grid.x, distance(grid.mapping, "x")));
        break;
      }
      case GridKind::kCurvilinear: {
        d.push_back(add_dimension(in_grid("y", index), grid.ny));
        d.push_back(add_dimension(in_grid("x", index), grid.nx));
        break;
      }
      case GridKind::kUnstructured:
        d.push_back(add_dimension(in_grid("cell", index), grid.nx));
        break;
    }
  }

  static Attributes longitude(const char* axis) {
    Attributes a{
        {"standard_name", "longitude"}, {"long_name", "longitude"}, {"units", "degrees_east"}};
    if (axis) a.push_back({"axis", axis});
    return a;
  }
  static Attributes latitude(const char* axis) {
    Attributes a{
        {"standard_name", "latitude"}, {"long_name", "latitude"}, {"units", "degrees_north"}};
    if (axis) a.push_back({"axis", axis});
    return a;
  }
  // Without a mapping to the earth no standard name is true, and an attribute axis would promise
  // latitudes and longitudes (section 5.6).
  static Attributes distance(const GridMapping& mapping, const std::string& along) {
    const bool is_x = along == "x";
    if (mapping.name.empty()) return {{"long_name", "distance along " + along}, {"units", "m"}};
    if (mapping.is_called("rotated_latitude_longitude")) {
      return {{"standard_name", is_x ? "grid_longitude" : "grid_latitude"},
              {"units", "degrees"},
              {"axis", is_x ? "X" : "Y"}};
    }
    return {{"standard_name", "projection_" + along + "_coordinate"},
            {"units", "m"},
            {"axis", is_x ? "X" : "Y"}};
  }

  int bounds_dimension() {
    if (bounds_ < 0) bounds_ = add_dimension("bnds", 2);
    return bounds_;
  }

  Status add_axis(int index) {
    if (axes_.count(index)) return {};
    Axis axis = catalogue_.axes[index];
    Result<std::optional<Hybrid>> hybrid = std::optional<Hybrid>();
    if (has_names_) hybrid = hybrid_of(catalogue_, stream_, index);
    if (!hybrid.ok()) return hybrid.status();
    if (*hybrid) {
      complete(**hybrid, axis);
      hybrid_axes_.insert(index);
    }
    Attributes attributes = axis.attributes;
    if (!axis.units.empty() && !text_of(attributes, "units"))
      attributes.push_back({"units", axis.units});
    if (text_of(attributes, "positive") && !text_of(attributes, "axis"))
      attributes.push_back({"axis", "Z"});
    if (!axis.bounds.empty()) attributes.push_back({"bounds", axis.name + "_bnds"});
    const int dimension = add_coordinate(axis.name, axis.values, std::move(attributes));
    axes_[index] = dimension;
    if (!axis.bounds.empty()) {
      Variable bounds;
      bounds.name = axis.name + "_bnds";
      bounds.dimensions = {dimension, bounds_dimension()};
      bounds.values = axis.bounds;
      const std::string terms = *hybrid ? formula_terms(**hybrid, true) : "";
      if (!terms.empty() && !(*hybrid)->at_interfaces)
        bounds.attributes.push_back({"formula_terms", terms});
      add_variable(std::move(bounds));
    }
    if (*hybrid)
      add_coefficients(**hybrid, dimension, axis.bounds.empty() ? -1 : bounds_, out_.file);
    return {};
  }

  void add_time() {
    out_.file.time = add_dimension("time", 0);
    Variable time;
    time.name = "time";
    time.over_time = true;
    time.attributes = {{"standard_name", "time"},
                       {"long_name", "time"},
                       {"units", "seconds since " + catalogue_.reference},
                       {"calendar", catalogue_.calendar},
                       {"axis", "T"}};
    if (has_leap_seconds(catalogue_.calendar))
      time.attributes.push_back({"units_metadata", "leap_seconds: none"});
    if (!stream_.reduces()) {
      out_.time = add_variable(std::move(time));
      return;
    }
    time.attributes.push_back({"bounds", "time_bnds"});
    out_.time = add_variable(std::move(time));
    Variable bounds;
    bounds.name = "time_bnds";
    bounds.over_time = true;
    bounds.dimensions = {bounds_dimension()};
    out_.time_bounds = add_variable(std::move(bounds));
  }

  void add_lonlat(int index) {
    const Grid& grid = catalogue_.grids[index];
    if (grid.lonlat_decomposition < 0) return;
    if (grid.kind != GridKind::kCurvilinear && grid.kind != GridKind::kUnstructured) return;
    LonLat lonlat{index, grid.lonlat_decomposition, -1, -1};
    Variable v;
    v.dimensions = horizontal_[index].dimensions;
    v.name = in_grid("lon", index);
    v.attributes = longitude(nullptr);
    lonlat.lon = add_variable(v);
    v.name = in_grid("lat", index);
    v.attributes = latitude(nullptr);
    lonlat.lat = add_variable(v);
    out_.lonlat.push_back(lonlat);
    horizontal_[index].coordinates = in_grid("lat", index) + " " + in_grid("lon", index);
  }

  // What the field names, else its grid's own.
  void add_mappings(const Field& field) {
    const std::string* own = text_of(field.attributes, "grid_mapping");
    for (const std::string& name :
         own ? mappings_in(*own)
             : std::vector<std::string>{catalogue_.grid_of(field).mapping.name}) {
      const auto is_called = [&](const auto& thing) { return thing.name == name; };
      const auto grid = std::find_if(catalogue_.grids.begin(), catalogue_.grids.end(),
                                     [&](const Grid& g) { return is_called(g.mapping); });
      if (name.empty() || grid == catalogue_.grids.end() || !mappings_.insert(name).second)
        continue;
      Variable v;
      v.name = name;
      v.type = WEIR_INT32;
      v.attributes = grid->mapping.attributes;
      v.values = {0};
      add_variable(std::move(v));
    }
  }

  void add_field(const StreamField& chosen) {
    const Field& field = catalogue_.fields[chosen.field];
    const Horizontal& horizontal = horizontal_[catalogue_.decompositions[field.decomposition].grid];
    Variable v;
    v.name = has_names_ ? catalogue_.name_of(chosen) : field.name;
    v.type = field.file_type;
    v.over_time = true;
    for (int axis : field.axes) v.dimensions.push_back(axes_[axis]);
    v.dimensions.insert(v.dimensions.end(), horizontal.dimensions.begin(),
                        horizontal.dimensions.end());
    v.attributes = field.attributes;
    const bool is_hybrid = std::any_of(field.axes.begin(), field.axes.end(),
                                       [&](int axis) { return hybrid_axes_.count(axis) > 0; });
    std::erase_if(v.attributes, [&](const Attribute& a) {
      return a.name == "cell_methods" || (is_hybrid && a.name == "GRIB_pv");
    });
    const std::string* own = text_of(field.attributes, "cell_methods");
    const std::string methods = cell_methods(own ? *own : "", chosen.operation, stream_.reduces());
    if (!methods.empty()) v.attributes.push_back({"cell_methods", methods});
    const std::string* standard_name = text_of(field.attributes, "standard_name");
    if (standard_name && is_temperature(*standard_name) && chosen.operation != WEIR_ACCUMULATE &&
        !text_of(field.attributes, "units_metadata")) {
      v.attributes.push_back({"units_metadata", "temperature: on_scale"});
    }
    if (!horizontal.coordinates.empty() && !text_of(field.attributes, "coordinates")) {
      v.attributes.push_back({"coordinates", horizontal.coordinates});
    }
    const std::string& mapping = catalogue_.grid_of(field).mapping.name;
    if (!mapping.empty() && !text_of(field.attributes, "grid_mapping"))
      v.attributes.push_back({"grid_mapping", mapping});
    v.fill = packing_of(field.attributes) ? std::optional<Number>(default_fill(field.file_type))
                                          : field.missing;
    v.chunk = catalogue_.chunk_of(chosen);
    const bool configured = chosen.compression || stream_.compression;
    if (configured || format_row(stream_.format).compresses)
      v.compression = catalogue_.compression_of(stream_, chosen);
    if (v.type == WEIR_FLOAT32 || v.type == WEIR_FLOAT64)
      v.rounding = catalogue_.rounding_of(stream_, chosen);
    v.keys = chosen.keys;
    out_.fields.push_back(add_variable(std::move(v)));
  }

  // Variables that an attribute names are in the file, or it is not.
  void drop_dangling(Attributes& attributes) const {
    std::erase_if(attributes, [this](const Attribute& a) {
      if (a.name != "grid_mapping" && a.name != "ancillary_variables") return false;
      const std::string* text = std::get_if<std::string>(&a.value);
      return text == nullptr || !has_all(*text);
    });
  }

  bool has_all(const std::string& names) const {
    std::istringstream words(names);
    for (std::string word; words >> word;) {
      if (word.back() == ':') word.pop_back();
      const auto named = [&](const Variable& v) { return v.name == word; };
      if (std::none_of(out_.file.variables.begin(), out_.file.variables.end(), named)) return false;
    }
    return true;
  }

  void add_global() {
    Attributes& a = out_.file.attributes;
    a.push_back({"Conventions", "CF-1.11"});
    for (const Attribute& own : catalogue_.attributes) {
      if (own.name != "Conventions" && own.name != "history") a.push_back(own);
    }
    a.push_back({"history", "written by weir: stream " + stream_.name});
    out_.file.keys = stream_.keys;
  }

  Status check_names() const {
    std::map<std::string, int> seen;
    for (const Variable& v : out_.file.variables) {
      if (seen[v.name]++ && has_names_) return clash(v.name);
    }
    std::map<std::string, int> dimensions;
    for (const Dimension& d : out_.file.dimensions) {
      if (dimensions[d.name]++) return clash(d.name);
    }
    for (int f : out_.fields) {
      if (dimensions.count(out_.file.variables[f].name)) return clash(out_.file.variables[f].name);
    }
    return {};
  }

  Status clash(const std::string& name) const {
    return {WEIR_E_ARGUMENT, "stream " + stream_.name + ": two things would be called " + name +
                                 " in its files (dimensions, coordinates and fields share their "
                                 "names); rename the field or the axis"};
  }

  const Catalogue& catalogue_;
  const Stream& stream_;
  StreamFile out_;
  std::vector<int> grids_;              // in the order of the fields
  std::map<int, Horizontal> horizontal_;
  std::map<int, int> axes_;             // their dimensions
  std::set<int> hybrid_axes_;           // whose coefficients are variables
  const bool has_names_;                // of variables, in this format
  std::set<std::string> mappings_;
  int bounds_ = -1;
};

}  // namespace

Result<StreamFile> describe(const Catalogue& catalogue, const Stream& stream) {
  return Describer(catalogue, stream, !takes_keys(stream.format)).describe();
}

Result<StreamFile> describe_field(const Catalogue& catalogue, int field) {
  Stream alone;
  alone.name = "reading";
  alone.fields.emplace_back();
  for (const Stream& stream : catalogue.streams) {
    for (const StreamField& member : stream.fields) {
      if (member.field != field || (stream.keys.empty() && member.keys.empty())) continue;
      if (!alone.keys.empty() || !alone.fields[0].keys.empty()) continue;
      alone.keys = stream.keys;
      alone.fields[0].keys = member.keys;
    }
  }
  alone.fields[0].field = field;
  return Describer(catalogue, alone, false).describe();
}

Status check_format(const Catalogue& catalogue, const Stream& stream) {
  if (stream.fields.empty()) return {};
  std::string why;
  const Format* format = find_format(stream.format, &why);
  if (format == nullptr) return {WEIR_E_FORMAT, "stream " + quoted(stream.name) + ": " + why};
  const Result<StreamFile> file = describe(catalogue, stream);
  if (!file.ok()) return file.status();
  const Status fine = format->check((*file).file);
  return fine.ok() ? fine
                   : Status(fine.code(), "stream " + quoted(stream.name) + ": " + fine.message());
}

}  // namespace weir::output
