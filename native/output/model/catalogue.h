// SPDX-License-Identifier: Apache-2.0
// What a program has defined, as plain data: the same on every rank but for decompositions, of
// which each rank knows its own part, and lon/lat of curvilinear and unstructured grids. Objects
// refer to one another by their index in the catalogue. Servers get it from rank 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "output/core/number.h"
#include "output/core/types.h"
#include <weir/stream.h>

namespace weir::output {

struct Attribute {
  std::string name;
  std::variant<std::string, double, std::vector<double>> value;

  bool operator==(const Attribute&) const = default;
};
using Attributes = std::vector<Attribute>;

// Null: there is none of the name, or it is no text.
inline const std::string* text_of(const Attributes& attributes, const std::string& name) {
  for (const Attribute& a : attributes) {
    if (a.name == name) return std::get_if<std::string>(&a.value);
  }
  return nullptr;
}

// What a stream or a field of it has for its format alone: a key of GRIB. `place`: where the
// configuration says it, or "".
struct FormatKey {
  std::string name;
  decltype(Attribute::value) value;
  std::string place;

  bool operator==(const FormatKey&) const = default;
};
using FormatKeys = std::vector<FormatKey>;

// Whether the format has them.
inline bool takes_keys(const std::string& format) { return format.rfind("grib", 0) == 0; }

// CF wants these numbers in the field's own type; others are float64 in files.
inline bool has_own_type(const std::string& attribute) {
  for (const char* own :
       {"valid_min", "valid_max", "valid_range", "missing_value", "flag_values", "flag_masks"}) {
    if (attribute == own) return true;
  }
  return false;
}

// The projection of a grid: a variable of files that has attributes alone. No name: the grid has
// none.
struct GridMapping {
  std::string name;
  Attributes attributes;  // grid_mapping_name is one of them

  bool is_called(const char* grid_mapping_name) const {
    for (const Attribute& a : attributes) {
      if (a.name == "grid_mapping_name" && a.value == Attribute{"", grid_mapping_name}.value)
        return true;
    }
    return false;
  }
};

enum class GridKind { kLonLat, kGaussian, kPlane, kCurvilinear, kUnstructured };

struct Grid {
  std::string name;
  GridKind kind = GridKind::kLonLat;
  int64_t nx = 0, ny = 1;        // unstructured: nx cells, ny 1
  std::vector<double> x,
      y;  // one-dimensional coordinates, empty for curvilinear and unstructured grids
  int lonlat_decomposition = -1; // of the two-dimensional ones; -1: none
  std::vector<double> lon, lat;  // this rank's part of them
  GridMapping mapping;

  int64_t points() const { return nx * ny; }
  bool one_dimensional() const { return kind == GridKind::kUnstructured; }
};

struct Halo {
  int64_t west = 0, east = 0, south = 0, north = 0;
};

struct Decomposition {
  std::string name;
  int grid = -1;
  bool block = true;
  int64_t i0 = 0, ni = 0, j0 = 0, nj = 0;  // a block
  std::vector<int64_t> indices;            // otherwise: in the order of the rank's memory
  Halo halo;

  int64_t points() const { return block ? ni * nj : static_cast<int64_t>(indices.size()); }
};

struct Axis {
  std::string name, units;
  std::vector<double> values;
  std::vector<double> bounds;  // [size][2], or empty
  Attributes attributes;
};

struct Compression {
  enum class Kind { kNone, kDeflate, kZstd } kind = Kind::kNone;
  int level = 0;
};

// Of floating point numbers, before they are compressed.
struct Rounding {
  int bits = 0;            // of the mantissa that stay; 0: see information
  double information = 0;  // the share that stays of what the bits say; 0: all

  bool any() const { return bits > 0 || information > 0; }
};

struct Field {
  std::string name;
  Type type = WEIR_FLOAT32, file_type = WEIR_FLOAT32;
  int decomposition = -1;
  std::vector<int> axes;  // slowest first
  Attributes attributes;
  std::optional<Number> missing;
  std::optional<Compression> compression;
  std::vector<int64_t> chunk;  // empty: the format's choice
};

constexpr const char* name_of(weir_operation operation) {
  switch (operation) {
    case WEIR_INSTANT: return "instant";
    case WEIR_MEAN: return "mean";
    case WEIR_MINIMUM: return "minimum";
    case WEIR_MAXIMUM: return "maximum";
    case WEIR_ACCUMULATE: return "accumulate";
  }
  return "";
}

struct StreamField {
  int field = -1;
  weir_operation operation = WEIR_INSTANT;
  // Of the configuration, for this stream alone; see Catalogue::compression_of and chunk_of.
  std::optional<Compression> compression;
  std::vector<int64_t> chunk;
  FormatKeys keys;
  std::optional<Rounding> rounding = std::nullopt;
  std::string name = {};  // in the files; "": the field's
};

// What becomes of a file that has the name already when a run begins its own.
enum class Existing { kReplace, kRefuse, kAppend };

// Of the calendar, for files.
enum class Period { kNone, kDay, kMonth, kYear };

struct Stream {
  std::string name, path, format = "cdf5";
  double every_s = 0;       // 0: see every_steps
  int64_t every_steps = 1;
  int64_t rotation = 0;     // frames of a file; 0: all, or those of a period
  Period period = Period::kNone;
  Existing existing = Existing::kReplace;
  std::vector<StreamField> fields;
  std::vector<std::pair<std::string, std::string>> hints;  // MPI_Info, from the configuration
  std::optional<Compression> compression;  // of the configuration, for all its fields
  std::optional<Rounding> rounding;        // likewise
  FormatKeys keys;                         // likewise

  bool reduces() const {
    for (const StreamField& f : fields) {
      if (f.operation != WEIR_INSTANT) return true;
    }
    return false;
  }
};

struct Catalogue {
  std::string reference = "2000-01-01 00:00:00", calendar = "proleptic_gregorian";
  Attributes attributes;
  std::vector<Grid> grids;
  std::vector<Decomposition> decompositions;
  std::vector<Axis> axes;
  std::vector<Field> fields;
  std::vector<Stream> streams;

  const Grid& grid_of(const Field& f) const { return grids[decompositions[f.decomposition].grid]; }
  // Elements of one record of the field: points x levels.
  int64_t levels_of(const Field& f) const {
    int64_t n = 1;
    for (int axis : f.axes) n *= static_cast<int64_t>(axes[axis].values.size());
    return n;
  }
  // What the configuration says of the field in the stream, else of the stream, else what the
  // program said.
  Compression compression_of(const Stream& s, const StreamField& f) const {
    if (f.compression) return *f.compression;
    if (s.compression) return *s.compression;
    return fields[f.field].compression.value_or(Compression{});
  }
  Rounding rounding_of(const Stream& s, const StreamField& f) const {
    if (f.rounding) return *f.rounding;
    return s.rounding.value_or(Rounding{});
  }
  const std::vector<int64_t>& chunk_of(const StreamField& f) const {
    return f.chunk.empty() ? fields[f.field].chunk : f.chunk;
  }
  const std::string& name_of(const StreamField& f) const {
    return f.name.empty() ? fields[f.field].name : f.name;
  }
};

}  // namespace weir::output
