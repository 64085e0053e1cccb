// SPDX-License-Identifier: Apache-2.0
// A file's definitions, attributes and coordinates, written by netCDF-C: the same code for CDF-2,
// CDF-5 and netCDF-4.
#include <netcdf.h>
#include <netcdf_filter.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "output/format/netcdf/image.h"
#include "output/format/netcdf/parts.h"
#include "output/format/netcdf/quiet.h"
#include "output/format/room.h"

namespace weir::output::netcdf {

// Data of classic files begin at a multiple of this, so that big writes meet pages and stripes as
// well as they can.
constexpr size_t kAlignment = 4096;
constexpr unsigned kZstdFilter = 32015;

// Of nc_create: attach_scales() makes the references to dimensions. Older libraries make them
// themselves.
#ifdef NC_NODIMSCALE_ATTACH
constexpr int kOwnScales = NC_NODIMSCALE_ATTACH;
#else
constexpr int kOwnScales = 0;
#endif

nc_type to_nc(Type type) {
  switch (type) {
    case WEIR_FLOAT32: return NC_FLOAT;
    case WEIR_FLOAT64: return NC_DOUBLE;
    case WEIR_INT32: return NC_INT;
    case WEIR_INT64: return NC_INT64;
    case WEIR_INT16: return NC_SHORT;
    case WEIR_INT8: return NC_BYTE;
  }
  return NC_NAT;
}

bool say(Why& why, const char* what, const char* object, const char* cause) {
  std::snprintf(why.text, sizeof why.text, "%s %s: %s", what, object, cause);
  return false;
}

bool say_errno(Why& why, const std::string& what, const char* path, int error) {
  return say(why, what.c_str(), path, (std::strerror(error) + room_advice(error, path)).c_str());
}

namespace {

struct Creation {
  const FileDescription& description;
  Kind kind;
  int file;
  std::vector<int> dimensions, variables;
  std::string doing;  // for the message of an error
};

int put_attribute(const Creation& c, int variable, const Attribute& attribute, nc_type type) {
  const char* name = attribute.name.c_str();
  if (const std::string* text = std::get_if<std::string>(&attribute.value)) {
    return nc_put_att_text(c.file, variable, name, text->size(), text->data());
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&attribute.value)) {
    return nc_put_att_double(c.file, variable, name, type, numbers->size(), numbers->data());
  }
  return nc_put_att_double(c.file, variable, name, type, 1, &std::get<double>(attribute.value));
}

nc_type attribute_type(const std::string& name, Type variable) {
  return has_own_type(name) ? to_nc(variable) : NC_DOUBLE;
}

int put_fill(const Creation& c, int id, const Variable& v) {
  const nc_type type = to_nc(v.type);
  if (type != NC_INT64) return nc_put_att_double(c.file, id, "_FillValue", type, 1, &v.fill->real);
  const long long exact = v.fill->whole;
  return nc_put_att_longlong(c.file, id, "_FillValue", type, 1, &exact);
}

int set_storage(const Creation& c, int id, const Variable& v) {
  if (v.chunk.empty()) return NC_NOERR;  // a scalar, or fixed: contiguous
  std::vector<size_t> chunk(v.chunk.begin(), v.chunk.end());
  if (int error = nc_def_var_chunking(c.file, id, NC_CHUNKED, chunk.data()); error != NC_NOERR)
    return error;
  if (v.compression.kind == Compression::Kind::kNone) return NC_NOERR;
  const bool deflate = v.compression.kind == Compression::Kind::kDeflate;
  const int shuffle = size_of(v.type) > 1;
  if (int error = nc_def_var_deflate(c.file, id, shuffle, deflate, v.compression.level);
      error != NC_NOERR)
    return error;
  if (deflate) return NC_NOERR;
  const unsigned level = static_cast<unsigned>(v.compression.level);
  return nc_def_var_filter(c.file, id, kZstdFilter, 1, &level);
}

int define_variable(Creation& c, const Variable& v) {
  std::vector<int> dimensions;
  if (v.over_time) dimensions.push_back(c.dimensions[c.description.time]);
  for (int d : v.dimensions) dimensions.push_back(c.dimensions[d]);
  int id = -1;
  int error = nc_def_var(c.file, v.name.c_str(), to_nc(v.type), static_cast<int>(dimensions.size()),
                         dimensions.data(), &id);
  if (error == NC_NOERR && c.kind == Kind::kNetcdf4)
    error = nc_def_var_fill(c.file, id, NC_NOFILL, nullptr);
  if (error == NC_NOERR && v.fill) error = put_fill(c, id, v);
  if (error == NC_NOERR && c.kind == Kind::kNetcdf4) error = set_storage(c, id, v);
  for (const Attribute& a : v.attributes) {
    if (error == NC_NOERR) error = put_attribute(c, id, a, attribute_type(a.name, v.type));
  }
  c.variables.push_back(id);
  return error;
}

int define(Creation& c) {
  int error = NC_NOERR, previous = 0;
  nc_set_fill(c.file, NC_NOFILL, &previous);
  for (size_t i = 0; i < c.description.dimensions.size(); i++) {
    const Dimension& d = c.description.dimensions[i];
    int id = -1;
    c.doing = "define dimension " + d.name + " of";
    const bool time = static_cast<int>(i) == c.description.time;
    error =
        nc_def_dim(c.file, d.name.c_str(), time ? NC_UNLIMITED : static_cast<size_t>(d.size), &id);
    if (error != NC_NOERR) return error;
    c.dimensions.push_back(id);
  }
  for (const Variable& v : c.description.variables) {
    c.doing = "define variable " + v.name + " of";
    if (error = define_variable(c, v); error != NC_NOERR) return error;
  }
  for (const Attribute& a : c.description.attributes) {
    c.doing = "define attribute " + a.name + " of";
    if (error = put_attribute(c, NC_GLOBAL, a, NC_DOUBLE); error != NC_NOERR) return error;
  }
  c.doing = "write the header of";
  return c.kind == Kind::kNetcdf4 ? nc_enddef(c.file)
                                  : nc__enddef(c.file, 0, kAlignment, 0, kAlignment);
}

int put_coordinates(Creation& c) {
  for (size_t i = 0; i < c.description.variables.size(); i++) {
    const Variable& v = c.description.variables[i];
    if (v.values.empty() || v.over_time) continue;
    c.doing = "write " + std::to_string(v.values.size() * size_of(v.type)) + " bytes of " + v.name +
              " to";
    if (int error = nc_put_var_double(c.file, c.variables[i], v.values.data()); error != NC_NOERR)
      return error;
  }
  return NC_NOERR;
}

// `path` is what netCDF opens, `name` what the user knows it by; `image`, when it is wanted, gets
// the file's bytes.
bool make(const FileDescription& description, const char* path, int mode, const char* name,
          Kind kind, std::vector<char>* image, Why& why) {
  const Quiet quiet;
  register_zstd();
  Creation c{description, kind, -1, {}, {}, "create"};
  int error = nc_create(path, NC_CLOBBER | mode, &c.file);
  const auto failed = [&](const std::string& what) {
    return error > 0 ? say_errno(why, what, name, error)  // netCDF's own codes are negative
                     : say(why, what.c_str(), name, quiet.cause(nc_strerror(error)));
  };
  if (error != NC_NOERR) return failed("cannot create");
  error = define(c);
  if (error == NC_NOERR) error = put_coordinates(c);
  if (error == NC_NOERR && image) {
    c.doing = "make";
    if (kOwnScales != 0 && !attach_scales(description)) error = NC_EHDFERR;
    if (error == NC_NOERR) error = nc_sync(c.file);
    if (error == NC_NOERR) *image = image_bytes();
    if (error == NC_NOERR && image->empty()) error = NC_EHDFERR;
  }
  if (error != NC_NOERR) {
    nc_abort(c.file);
    return failed("cannot " + c.doing);
  }
  error = nc_close(c.file);
  return error == NC_NOERR || failed("cannot write the header and coordinates of");
}

}  // namespace

int define_in_memory(const FileDescription& description, Kind kind, int* file, std::string* doing) {
  const int mode = kind == Kind::kNetcdf4 ? NC_NETCDF4
                   : kind == Kind::kCdf2  ? NC_64BIT_OFFSET
                                          : NC_64BIT_DATA;
  Creation c{description, kind, -1, {}, {}, "create"};
  int error = nc_create(kInMemory, NC_CLOBBER | NC_DISKLESS | mode, &c.file);
  if (error == NC_NOERR) error = define(c);
  if (error == NC_NOERR) error = put_coordinates(c);
  if (error != NC_NOERR && c.file >= 0) nc_abort(c.file);
  *file = c.file;
  *doing = c.doing;
  return error;
}

bool create(const FileDescription& description, const char* path, Kind kind, Why& why) {
  if (kind != Kind::kNetcdf4)
    return make(description, path, kind == Kind::kCdf2 ? NC_64BIT_OFFSET : NC_64BIT_DATA, path,
                kind, nullptr, why);
  std::vector<char> image;
  if (!make(description, kInMemory, NC_NETCDF4 | NC_DISKLESS | kOwnScales, path, kind, &image, why))
    return false;
  const int error = write_image(image, path);
  return error == 0 || say_errno(why, "cannot write " + std::to_string(image.size()) +
                                          " bytes of header and coordinates to", path, error);
}

}  // namespace weir::output::netcdf
