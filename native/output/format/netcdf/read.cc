// SPDX-License-Identifier: Apache-2.0
// Reading of any netCDF file by netCDF-C.
#include <netcdf.h>
#include <strings.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "output/format/netcdf/open.h"
#include "output/format/netcdf/parts.h"
#include "output/format/netcdf/quiet.h"

namespace weir::output::netcdf {
namespace {

struct Open {
  int file;
  std::string path;
};

// Requests of the classic formats go through a buffer of this size.
constexpr size_t kBufferBytes = 4 << 20;

bool weir_type_of(nc_type type, Type& out) {
  switch (type) {
    case NC_FLOAT: out = WEIR_FLOAT32; return true;
    case NC_DOUBLE: out = WEIR_FLOAT64; return true;
    case NC_UINT:
    case NC_INT: out = WEIR_INT32; return true;
    case NC_INT64: out = WEIR_INT64; return true;
    case NC_USHORT:
    case NC_SHORT: out = WEIR_INT16; return true;
    case NC_UBYTE:
    case NC_BYTE: out = WEIR_INT8; return true;
  }
  return false;
}

bool is_stored_unsigned(nc_type type) {
  return type == NC_UBYTE || type == NC_USHORT || type == NC_UINT;
}

// A box of elements in the order of the file, cut from a range of them: the rows of one dimension
// between whole faster ones.
struct Box {
  size_t start[NC_MAX_VAR_DIMS], count[NC_MAX_VAR_DIMS];
  int64_t elements;
};

// The greatest box that begins at element `first` and has at most `count` elements.
Box cut(const Shape& shape, int64_t first, int64_t count) {
  Box box;
  int64_t stride[9];  // elements of one step in dimension d
  stride[shape.rank] = 1;
  for (int d = shape.rank; d-- > 0;) stride[d] = stride[d + 1] * shape.lengths[d];
  int split = shape.rank;  // the dimension of which several rows are taken
  for (int d = 0; d < shape.rank && split == shape.rank; d++) {
    if (first % stride[d + 1] == 0 && count >= stride[d + 1]) split = d;
  }
  box.elements = 1;
  for (int d = 0; d < shape.rank; d++) {
    const int64_t at = first / stride[d + 1] % shape.lengths[d];
    int64_t n = d < split ? 1 : shape.lengths[d];
    if (d == split) n = std::min(count / stride[d + 1], shape.lengths[d] - at);
    box.start[d] = static_cast<size_t>(d > split ? 0 : at);
    box.count[d] = static_cast<size_t>(n);
    box.elements *= n;
  }
  return box;
}

// What the library fills variables without _FillValue with. Bytes have none: each of their values
// may be one (netCDF User's Guide, appendix A, _FillValue).
std::optional<Number> own_fill(nc_type type) {
  switch (type) {
    case NC_FLOAT: return Number(NC_FILL_FLOAT);
    case NC_DOUBLE: return Number(NC_FILL_DOUBLE);
    case NC_SHORT: return Number(NC_FILL_SHORT);
    case NC_USHORT: return Number(NC_FILL_USHORT);
    case NC_INT: return Number(NC_FILL_INT);
    case NC_UINT: return Number(NC_FILL_UINT);
    case NC_INT64: return Number::exactly(NC_FILL_INT64);
  }
  return {};
}

// One number; nothing: there is no such attribute, or it is a list.
std::optional<Number> number_of(int file, int variable, const char* name) {
  nc_type type = NC_NAT;
  size_t length = 0;
  if (nc_inq_att(file, variable, name, &type, &length) != NC_NOERR || length != 1) return {};
  long long whole = 0;
  if (type == NC_INT64 && nc_get_att_longlong(file, variable, name, &whole) == NC_NOERR)
    return Number::exactly(whole);
  double value = 0;
  if (nc_get_att_double(file, variable, name, &value) != NC_NOERR) return {};
  return value;
}

void find_packing(int file, int variable, nc_type type, Shape& shape) {
  const std::optional<Number> scale = number_of(file, variable, "scale_factor"),
                              offset = number_of(file, variable, "add_offset");
  shape.packed = scale || offset;
  shape.scale = scale.value_or(1).real;
  shape.offset = offset.value_or(0).real;
  // They have the type that is stored, whatever it is meant as: -1 of a byte is 255.
  const double range = std::ldexp(1.0, static_cast<int>(8 * size_of(shape.type)));
  const auto add = [&](const std::optional<Number>& fill) {
    if (!fill) return;
    if (shape.is_unsigned && fill->real < 0)
      shape.fills.add(fill->real + range);
    else if (!shape.is_unsigned && is_stored_unsigned(type) && fill->real >= range / 2)
      shape.fills.add(fill->real - range);
    else
      shape.fills.add(*fill);
  };
  const std::optional<Number> fill = number_of(file, variable, "_FillValue");
  add(fill ? fill : own_fill(type));
  add(number_of(file, variable, "missing_value"));
}

// A text as netCDF-3 has it, or one string of netCDF-4; "" where it is longer than its room.
template <size_t room>
void find_text(int file, int variable, const char* attribute, char (&to)[room]) {
  nc_type type = NC_NAT;
  size_t length = 0;
  if (nc_inq_att(file, variable, attribute, &type, &length) != NC_NOERR) return;
  if (type == NC_CHAR && length < room) {
    if (nc_get_att_text(file, variable, attribute, to) != NC_NOERR) to[0] = '\0';
  } else if (type == NC_STRING && length == 1) {
    char* text = nullptr;
    if (nc_get_att_string(file, variable, attribute, &text) != NC_NOERR) return;
    if (text != nullptr && std::strlen(text) < room) std::strcpy(to, text);
    nc_free_string(1, &text);
  }
}

// The classic formats have no unsigned types; the attribute states how a type is meant.
void find_type(int file, int variable, nc_type type, Shape& shape) {
  char is_unsigned[256] = "";
  find_text(file, variable, "_Unsigned", is_unsigned);
  const bool means_unsigned = strcasecmp(is_unsigned, "true") == 0,
             means_signed = strcasecmp(is_unsigned, "false") == 0;
  shape.known_type = weir_type_of(type, shape.type);
  const bool is_integer =
      shape.known_type && shape.type != WEIR_FLOAT32 && shape.type != WEIR_FLOAT64;
  shape.is_unsigned = is_integer && !means_signed && (is_stored_unsigned(type) || means_unsigned);
  if (shape.is_unsigned && shape.type == WEIR_INT64) shape.known_type = false;
  char name[NC_MAX_NAME + 1] = "";
  nc_inq_type(file, type, name, nullptr);
  std::string text = means_unsigned && !is_stored_unsigned(type) ? "unsigned " : "";
  text += name;
  text.copy(shape.type_name, sizeof shape.type_name - 1);
}

// Many a writer makes no dimension unlimited.
bool is_time(int file, const char* dimension) {
  if (strcasecmp(dimension, "time") == 0) return true;
  int id = -1;
  if (nc_inq_varid(file, dimension, &id) != NC_NOERR) return false;
  char units[256] = "", axis[256] = "", standard_name[256] = "";
  find_text(file, id, "units", units);
  find_text(file, id, "axis", axis);
  find_text(file, id, "standard_name", standard_name);
  return std::strstr(units, " since ") != nullptr || std::strcmp(axis, "T") == 0 ||
         std::strcmp(standard_name, "time") == 0;
}

}  // namespace

void* open_file(const char* path, Why& why) {
  const Quiet quiet;
  register_zstd();
  int file = -1;
  if (int error = open_to_read(path, kBufferBytes, &file); error != NC_NOERR) {
    if (error == NC_ENOTNC) {
      say(why, "cannot read", path,
          "it is no file of netCDF, GRIB (edition 1 or 2) or Zarr (version 3)");
    } else {
      say(why, "cannot open", path, nc_strerror(error));
    }
    return nullptr;
  }
  return new Open{file, path};
}

void close_file(void* file) {
  const Quiet quiet;
  Open* open = static_cast<Open*>(file);
  nc_close(open->file);
  delete open;
}

bool find(void* file, const char* variable, Shape& shape, Why& why) {
  const Quiet quiet;
  const Open& open = *static_cast<Open*>(file);
  int id = -1, rank = 0, unlimited = -1, dimensions[NC_MAX_VAR_DIMS];
  nc_type type = NC_NAT;
  if (int error = nc_inq_varid(open.file, variable, &id); error != NC_NOERR) {
    return say(why, (std::string("no variable ") + variable + " in").c_str(), open.path.c_str(),
               nc_strerror(error));
  }
  int error = nc_inq_var(open.file, id, nullptr, &type, &rank, dimensions, nullptr);
  if (error == NC_NOERR) error = nc_inq_unlimdim(open.file, &unlimited);
  shape = {};
  find_type(open.file, id, type, shape);
  shape.records = 1;
  for (int d = 0; d < rank && error == NC_NOERR; d++) {
    size_t length = 0;
    char name[NC_MAX_NAME + 1] = "";
    error = nc_inq_dim(open.file, dimensions[d], name, &length);
    if (d == 0 && dimensions[d] == unlimited) {
      shape.over_time = true;
      shape.records = static_cast<int64_t>(length);
    } else if (shape.rank < 8) {
      if (d == 0) shape.has_fixed_time = is_time(open.file, name);
      if (std::strlen(name) < sizeof shape.dimensions[0])
        std::strcpy(shape.dimensions[shape.rank], name);
      shape.lengths[shape.rank++] = static_cast<int64_t>(length);
    } else {
      return say(why, (std::string("cannot read ") + variable + " of").c_str(), open.path.c_str(),
                 "too many dimensions");
    }
  }
  find_packing(open.file, id, type, shape);
  find_text(open.file, id, "units", shape.units);
  find_text(open.file, id, "standard_name", shape.standard_name);
  find_text(open.file, id, "coordinates", shape.coordinates);
  return error == NC_NOERR || say(why, (std::string("cannot read ") + variable + " of").c_str(),
                                  open.path.c_str(), nc_strerror(error));
}

bool read(void* file, const char* variable, int64_t record, int64_t first, int64_t count, void* to,
          Why& why) {
  const Quiet quiet;
  const Open& open = *static_cast<Open*>(file);
  Shape shape;
  if (!find(file, variable, shape, why)) return false;
  int id = -1;
  nc_inq_varid(open.file, variable, &id);
  while (count > 0) {
    const Box box = cut(shape, first, count);
    size_t start[NC_MAX_VAR_DIMS], counts[NC_MAX_VAR_DIMS];
    const int shift = shape.over_time ? 1 : 0;
    start[0] = static_cast<size_t>(record);
    counts[0] = 1;
    std::copy_n(box.start, shape.rank, start + shift);
    std::copy_n(box.count, shape.rank, counts + shift);
    if (int error = nc_get_vara(open.file, id, start, counts, to); error != NC_NOERR) {
      return say(why, (std::string("cannot read ") + variable + " of").c_str(), open.path.c_str(),
                 nc_strerror(error));
    }
    to = static_cast<char*>(to) + static_cast<size_t>(box.elements) * size_of(shape.type);
    first += box.elements;
    count -= box.elements;
  }
  return true;
}

}  // namespace weir::output::netcdf
