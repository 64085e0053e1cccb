// SPDX-License-Identifier: Apache-2.0
// Fields and streams, and whole catalogues.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>

#include "output/model/check.h"
#include "output/model/packing.h"
#include "output/model/path.h"
#include "output/model/text.h"

namespace weir::output {
namespace {

constexpr int kMostAxes = 4;

Status wrong(const std::string& what, const std::string& why) {
  return {WEIR_E_ARGUMENT, what + ": " + why};
}

bool is_type(Type type) { return size_of(type) > 0; }

Status check_compression(const std::string& what, const Compression& compression) {
  switch (compression.kind) {
    case Compression::Kind::kNone: return {};
    case Compression::Kind::kDeflate:
      if (compression.level >= 1 && compression.level <= 9) return {};
      return wrong(what, "deflate has levels 1 to 9, not " + std::to_string(compression.level));
    case Compression::Kind::kZstd:
      if (compression.level >= 1 && compression.level <= 19) return {};
      return wrong(what, "zstd has levels 1 to 19, not " + std::to_string(compression.level));
  }
  return wrong(what, "no compression that weir knows");
}

Status check_chunk(const Catalogue& catalogue, const Field& field,
                   const std::vector<int64_t>& chunk, const std::string& what) {
  if (chunk.empty()) return {};
  const Grid& grid = catalogue.grid_of(field);
  std::vector<int64_t> sizes;
  for (int axis : field.axes)
    sizes.push_back(static_cast<int64_t>(catalogue.axes[axis].values.size()));
  if (!grid.one_dimensional()) sizes.push_back(grid.ny);
  sizes.push_back(grid.nx);
  if (sizes.size() != chunk.size()) {
    return wrong(what, "a chunk of " + std::to_string(chunk.size()) + " numbers; expected " +
                           std::to_string(sizes.size()) + ", one for each dimension but time");
  }
  for (size_t i = 0; i < sizes.size(); i++) {
    if (chunk[i] < 1 || chunk[i] > sizes[i]) {
      return wrong(what, "chunk of " + std::to_string(chunk[i]) + " in dimension " +
                             std::to_string(i) + ", whose size is " + std::to_string(sizes[i]));
    }
  }
  return {};
}

bool exists_in(Type type, const Number& n) {
  const auto within = [&](int64_t low, int64_t high) {
    return n.is_whole && n.whole >= low && n.whole <= high;
  };
  switch (type) {
    case WEIR_FLOAT32: return std::isinf(n.real) || !std::isinf(static_cast<float>(n.real));
    case WEIR_FLOAT64: return true;
    case WEIR_INT8: return within(INT8_MIN, INT8_MAX);
    case WEIR_INT16: return within(INT16_MIN, INT16_MAX);
    case WEIR_INT32: return within(INT32_MIN, INT32_MAX);
    case WEIR_INT64: return n.is_whole;
  }
  return false;
}

// Whether the missing value exists in the types: otherwise files would have another one than the
// program.
Status check_missing(const Field& field, const std::string& what) {
  if (!field.missing) return {};
  const std::string text =
      "missing_value " + (field.missing->is_whole ? std::to_string(field.missing->whole)
                                                  : number_text(field.missing->real));
  if (!packing_of(field.attributes) && !exists_in(field.file_type, *field.missing)) {
    return wrong(
        what, text + " is no number of the field's type in files, " + name_of(field.file_type) +
                  "; if the field is packed, set scale_factor and add_offset before missing_value");
  }
  if (!exists_in(field.type, *field.missing))
    return wrong(what,
                 text + " is no number of the field's type in memory, " + name_of(field.type));
  return {};
}

Status check_packing_number(const Attribute& attribute, const std::string& what) {
  if (attribute.name != "scale_factor" && attribute.name != "add_offset") return {};
  const double* number = std::get_if<double>(&attribute.value);
  if (number == nullptr) return wrong(what, attribute.name + " is text; expected a number");
  if (std::isfinite(*number) && (*number != 0 || attribute.name == "add_offset")) return {};
  return wrong(what, attribute.name + " is " + number_text(*number) + "; expected a finite number" +
                         (attribute.name == "add_offset" ? "" : " that is not 0"));
}

// At the end of definitions: until then the type in files may still be set.
Status check_packing(const Field& field) {
  if (!packing_of(field.attributes) || field.file_type == WEIR_INT8 ||
      field.file_type == WEIR_INT16 || field.file_type == WEIR_INT32)
    return {};
  return wrong("field " + quoted(field.name),
               std::string("scale_factor and add_offset pack the field's values into integers of "
                           "8, 16 or 32 bits, but its type in files is ") +
                   name_of(field.file_type) +
                   "; set the type in files to int16, or leave the two attributes out");
}

bool is_mapping(const Catalogue& catalogue, const std::string& name) {
  const auto is_grids = [&](const Grid& grid) { return grid.mapping.name == name; };
  const auto is_field = [&](const Field& field) { return field.name == name; };
  return std::any_of(catalogue.grids.begin(), catalogue.grids.end(), is_grids) ||
         std::any_of(catalogue.fields.begin(), catalogue.fields.end(), is_field);
}

// At the end of definitions: mappings of grids may be set after fields.
Status check_grid_mapping(const Catalogue& catalogue, const Field& field) {
  for (const Attribute& attribute : field.attributes) {
    if (attribute.name != "grid_mapping") continue;
    const std::string* text = std::get_if<std::string>(&attribute.value);
    const std::vector<std::string> names = mappings_in(text == nullptr ? "" : *text);
    if (!names.empty() && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
          return is_mapping(catalogue, name);
        }))
      continue;
    return wrong("field " + quoted(field.name),
                 "grid_mapping " + quoted(text == nullptr ? "" : *text) +
                     " names neither a grid mapping nor a field of the program; define it with "
                     "weir_grid_set_mapping");
  }
  return {};
}

// At the end of definitions: attributes are set one after the other.
Status check_shared_mapping(const Catalogue& catalogue, const Grid& grid) {
  if (grid.mapping.name.empty()) return {};
  for (const Grid& other : catalogue.grids) {
    if (other.mapping.name != grid.mapping.name ||
        other.mapping.attributes == grid.mapping.attributes)
      continue;
    return wrong("grid mapping " + quoted(grid.mapping.name),
                 "its attributes differ between grids " + quoted(other.name) + " and " +
                     quoted(grid.name) +
                     "; give them the same attributes in the same order, or two names");
  }
  return {};
}

// netCDF tells of it when the file is made, which is too late.
Status check_own_type(const Field& field, const Attribute& attribute, const std::string& what) {
  const double* number = std::get_if<double>(&attribute.value);
  if (!number || !has_own_type(attribute.name) || exists_in(field.file_type, *number)) return {};
  return wrong(what, attribute.name + " " + number_text(*number) +
                         " is no number of the field's type in files, " + name_of(field.file_type));
}

const std::string* text_attribute(const Attributes& attributes, const char* name) {
  for (const Attribute& attribute : attributes) {
    if (attribute.name == name) return std::get_if<std::string>(&attribute.value);
  }
  return nullptr;
}

Status check_frequency(const Stream& stream, const std::string& what) {
  if (!std::isfinite(stream.every_s) || stream.every_s < 0)
    return wrong(what, "every " + number_text(stream.every_s) + " s");
  if (stream.every_s == 0 && stream.every_steps < 1)
    return wrong(what, "every " + std::to_string(stream.every_steps) + " steps");
  if (stream.rotation < 0)
    return wrong(what, "a new file after " + std::to_string(stream.rotation) + " frames");
  if (stream.rotation > 0 && stream.period != Period::kNone)
    return wrong(
        what, "a new file after a number of frames, and with the calendar; expected one of both");
  if (stream.period != Period::kNone && stream.every_s <= 0)
    return wrong(what,
                 "a new file with each day, month or year needs every_s (weir_stream_set_every)");
  return {};
}

// Whether files of different days, months or years have different names.
bool tells_apart(const std::string& path, Period period) {
  const auto has = [&](PathPart part) { return path_has(path, part); };
  if (has(PathPart::kStep) || has(PathPart::kFile)) return true;
  if (!has(PathPart::kYear)) return false;
  if (period == Period::kYear || has(PathPart::kDayOfYear)) return true;
  return has(PathPart::kMonth) && (period == Period::kMonth || has(PathPart::kDay));
}

// A file has each name once; messages of GRIB, which have none, differ by the operation.
Status check_apart(const Catalogue& catalogue, const Stream& stream, const StreamField& a,
                   const StreamField& b) {
  const bool has_names = !takes_keys(stream.format), is_same = a.field == b.field;
  const std::string& name = catalogue.name_of(b);
  if (has_names ? catalogue.name_of(a) != name : !is_same || a.operation != b.operation) return {};
  const std::string what = "stream " + quoted(stream.name),
                    field = "field " + quoted(catalogue.fields[b.field].name);
  if (!is_same)
    return wrong(what, "two fields are called " + quoted(name) + " in its files; rename one");
  if (a.operation == b.operation) {
    return wrong(what, field + " is in the stream twice, with one operation (" +
                           name_of(a.operation) + "); take one out");
  }
  return wrong(what, field + " is in the stream twice, with two operations (" +
                         name_of(a.operation) + ", " + name_of(b.operation) +
                         ") and one name; give one another name in the files: "
                         "weir_stream_add_field_as, or as = \"...\" in the configuration");
}

Status check_stream_fields(const Catalogue& catalogue, const Stream& stream,
                           const std::string& what) {
  for (size_t i = 0; i < stream.fields.size(); i++) {
    const StreamField& mine = stream.fields[i];
    const Field& field = catalogue.fields[mine.field];
    if (mine.operation < WEIR_INSTANT || mine.operation > WEIR_ACCUMULATE)
      return wrong(what, "field " + quoted(field.name) + " has no operation that weir knows");
    if (!mine.name.empty()) WEIR_TRY(check_name(what + ": name in files of", mine.name));
    for (size_t k = 0; k < i; k++) WEIR_TRY(check_apart(catalogue, stream, stream.fields[k], mine));
    const std::string member = what + ", field " + quoted(field.name);
    if (mine.compression) WEIR_TRY(check_compression(member, *mine.compression));
    const bool is_float = field.file_type == WEIR_FLOAT32 || field.file_type == WEIR_FLOAT64;
    if (mine.rounding && !is_float) {
      return wrong(member, std::string("its type in files is ") + name_of(field.file_type) +
                               "; only floating point numbers are rounded");
    }
    WEIR_TRY(check_chunk(catalogue, field, mine.chunk, member));
  }
  return {};
}

}  // namespace

std::vector<std::string> mappings_in(const std::string& attribute) {
  std::istringstream words(attribute);
  std::vector<std::string> names;
  for (std::string word; words >> word;) {
    const bool is_extended = word.back() == ':';
    if (is_extended) word.pop_back();
    if (is_extended || names.empty()) names.push_back(word);
  }
  return names;
}

Status check_file_names(const Stream& stream, const std::string& calendar) {
  const std::string what = "stream " + quoted(stream.name),
                    names = "the names from " + quoted(stream.path);
  if (stream.period != Period::kNone) {
    constexpr const char* kWords[] = {"", "day (%Y%m%d)", "month (%Y%m)", "year (%Y)"};
    if (tells_apart(stream.path, stream.period)) return {};
    return wrong(what, "a new file begins with each " +
                           std::string(kWords[static_cast<int>(stream.period)]) + ", but " + names +
                           " do not tell them apart");
  }
  if (stream.rotation <= 0) return {};
  const double apart_s = path_resolution_s(stream.path, calendar);
  if (apart_s == 0) {
    return wrong(what, "a new file begins after " + std::to_string(stream.rotation) +
                           " frames, but all would have the name " + quoted(stream.path) +
                           "; put %Y%m%d%H%M%S, {step} or {file} into it");
  }
  const double interval_s = stream.every_s * static_cast<double>(stream.rotation);
  if (stream.every_s <= 0 || apart_s <= interval_s) return {};
  return wrong(what, "a new file begins each " + number_text(interval_s) + " s, but " + names +
                         " do not differ so soon; use finer codes of time, {step} or {file}, or "
                         "rotation = \"day\", \"month\" or \"year\"");
}

Status check_field(const Catalogue& catalogue, const Field& field) {
  const std::string what = "field " + quoted(field.name);
  WEIR_TRY(check_name("field", field.name));
  if (field.name == "time" || field.name == "time_bnds")
    return wrong(what, "weir writes the variable of this name itself");
  for (const Field& other : catalogue.fields) {
    if (&other != &field && other.name == field.name)
      return wrong(what, "there is a field of this name already; names are unique in a context");
  }
  for (const Axis& axis : catalogue.axes) {
    if (axis.name == field.name)
      return wrong(what, "there is an axis of this name already; the two would be one variable");
  }
  if (!is_type(field.type) || !is_type(field.file_type))
    return wrong(what, "no type that weir knows (" + std::to_string(field.type) + ")");
  if (field.axes.size() > kMostAxes)
    return wrong(what, std::to_string(field.axes.size()) + " axes; expected at most 4");
  int64_t elements = catalogue.grid_of(field).points();
  for (size_t i = 0; i < field.axes.size(); i++) {
    const Axis& axis = catalogue.axes[field.axes[i]];
    const int64_t size = static_cast<int64_t>(axis.values.size());
    for (size_t k = 0; k < i; k++) {
      if (field.axes[k] == field.axes[i])
        return wrong(what, "axis " + quoted(axis.name) + " twice");
    }
    if (__builtin_mul_overflow(elements, size, &elements) || elements > (int64_t{1} << 59))
      return wrong(what, "more than 2^59 elements");
  }
  if (field.compression) WEIR_TRY(check_compression(what, *field.compression));
  WEIR_TRY(check_missing(field, what));
  for (const Attribute& attribute : field.attributes) {
    WEIR_TRY(check_attribute(what, attribute));
    WEIR_TRY(check_own_type(field, attribute, what));
    WEIR_TRY(check_packing_number(attribute, what));
  }
  return check_chunk(catalogue, field, field.chunk, what);
}

Status check_stream(const Catalogue& catalogue, const Stream& stream) {
  const std::string what = "stream " + quoted(stream.name);
  WEIR_TRY(check_name("stream", stream.name));
  for (const Stream& other : catalogue.streams) {
    if (&other == &stream) continue;
    if (other.name == stream.name)
      return wrong(what, "there is a stream of this name already; names are unique in a context");
    if (other.path == stream.path && stream.path.find("{stream}") == std::string::npos &&
        !other.fields.empty() && !stream.fields.empty()) {
      return wrong(
          what, "stream " + quoted(other.name) + " writes to the same path " + quoted(stream.path));
    }
  }
  if (Status path = check_path_template(stream.path); !path.ok())
    return wrong(what, path.message());
  WEIR_TRY(check_frequency(stream, what));
  WEIR_TRY(check_file_names(stream, catalogue.calendar));
  if (stream.compression) WEIR_TRY(check_compression(what, *stream.compression));
  return check_stream_fields(catalogue, stream, what);
}

Status check_catalogue(const Catalogue& catalogue, std::vector<std::string>* warnings) {
  WEIR_TRY(check_structure(catalogue));
  if (Result<Date> date = parse_date(catalogue.reference, catalogue.calendar); !date.ok()) {
    return wrong("reference of time", date.status().message());
  }
  for (const Attribute& attribute : catalogue.attributes)
    WEIR_TRY(check_attribute("context", attribute));
  for (const Grid& grid : catalogue.grids) {
    WEIR_TRY(check_grid(catalogue, grid));
    WEIR_TRY(check_shared_mapping(catalogue, grid));
  }
  for (const Axis& axis : catalogue.axes) WEIR_TRY(check_axis(catalogue, axis));
  for (const Decomposition& decomposition : catalogue.decompositions)
    WEIR_TRY(check_decomposition(catalogue, decomposition));
  for (const Field& field : catalogue.fields) {
    WEIR_TRY(check_field(catalogue, field));
    WEIR_TRY(check_packing(field));
    WEIR_TRY(check_grid_mapping(catalogue, field));
    const std::string* units = text_attribute(field.attributes, "units");
    if (!units || units->empty())
      warnings->push_back("field " + quoted(field.name) +
                          " has no units; readers take it for dimensionless ('1' says so)");
  }
  for (const Stream& stream : catalogue.streams) {
    WEIR_TRY(check_stream(catalogue, stream));
  }
  return {};
}

}  // namespace weir::output
