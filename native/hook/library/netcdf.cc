// SPDX-License-Identifier: Apache-2.0
#include "hook/library/netcdf.h"

#include <string.h>

#include "hook/mpi/io.h"

namespace weir::hook {
namespace {

constexpr int kDimensions = 1024;  // NC_MAX_VAR_DIMS
constexpr size_t kNameBytes = 257, kGroupBytes = 1024, kPathBytes = 4096 + 256;
constexpr size_t kVariables = 1024;

struct Spelling {
  const char *library, *name, *path, *dimensions, *dimension_ids, *dimension_length, *variable_type;
  const char *group, *type;  // of netCDF-4 alone
};
constexpr Spelling kNetcdf{"netcdf",          "nc_inq_varname",      "nc_inq_path",
                           "nc_inq_varndims", "nc_inq_vardimid",     "nc_inq_dimlen",
                           "nc_inq_vartype",  "nc_inq_grpname_full", "nc_inq_type"};
constexpr Spelling kPnetcdf{"pnetcdf",
                            "ncmpi_inq_varname",
                            "ncmpi_inq_path",
                            "ncmpi_inq_varndims",
                            "ncmpi_inq_vardimid",
                            "ncmpi_inq_dimlen",
                            "ncmpi_inq_vartype",
                            nullptr,
                            nullptr};

const Spelling& spelling_of(Library library) {
  return library == Library::pnetcdf ? kPnetcdf : kNetcdf;
}
Layer layer_of(Library library) {
  return library == Library::pnetcdf ? Layer::pnetcdf : Layer::netcdf;
}

// What is asked for once for each variable of an open file.
struct Variable {
  uint64_t key;  // stored last, and 0 before anything else is
  const LibraryCopy* copy;
  uint32_t generation;
  uint32_t name;
  uint32_t dimensions;
  uint32_t element_bytes;
};
constinit Variable variables[kVariables] = {};
constinit uint32_t generation = 1;

// Lengths are of size_t in the one, of MPI_Offset in the other: of 64 bits in both; that of a path
// is an int in PnetCDF.
bool path_of(const CallSite& site, const Spelling& spelling, int file, char* path) {
  const auto get = ask<int (*)(int, uint64_t*, char*)>(site, spelling.path);
  uint64_t length = 0;
  if (get == nullptr || get(file, &length, nullptr) != 0 ||
      static_cast<uint32_t>(length) >= kPathBytes)
    return false;
  if (get(file, &length, path) != 0) return false;
  path[static_cast<uint32_t>(length)] = 0;
  return true;
}

// Of netCDF's external types by number, NC_BYTE to NC_STRING; the library tells of types that the
// file defines.
uint32_t bytes_of_external(const CallSite& site, const Spelling& spelling, int file, int type) {
  constexpr uint8_t kBytes[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8, 8};
  if (type > 0 && type < static_cast<int>(sizeof kBytes)) return kBytes[type];
  const auto get = spelling.type != nullptr
                       ? ask<int (*)(int, int, char*, size_t*)>(site, spelling.type)
                       : nullptr;
  size_t bytes = 0;
  return get != nullptr && get(file, type, nullptr, &bytes) == 0 ? static_cast<uint32_t>(bytes) : 0;
}

// Puts the groups that the variable lies in before its name, as paths have directories:
// "ensemble/member1/T". Longer ones are left out.
void add_group(const CallSite& site, const Spelling& spelling, int file, char* name) {
  const auto get =
      spelling.group != nullptr ? ask<int (*)(int, size_t*, char*)>(site, spelling.group) : nullptr;
  size_t length = 0;  // with the slash of the root
  if (get == nullptr || get(file, &length, nullptr) != 0 || length < 2 || length >= kGroupBytes)
    return;
  char groups[kGroupBytes];
  if (get(file, &length, groups) != 0) return;
  memmove(name + length, name, strlen(name) + 1);
  memcpy(name, groups + 1, length - 1);
  name[length - 1] = '/';
}

Variable look_up(const CallSite& site, const NetcdfAccess& access) {
  const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(access.file)) << 32 |
                       (static_cast<uint32_t>(access.variable) + 1u);
  Variable& slot = variables[(key * 0x9e3779b97f4a7c15u >> 48) % kVariables];
  const Variable known = slot;
  const uint32_t now = base::load_relaxed(&generation);
  if (base::load(&slot.key) == key && known.key == key && known.copy == site.copy() &&
      known.generation == now)
    return known;
  const Spelling& spelling = spelling_of(access.library);
  const auto get_name = ask<int (*)(int, int, char*)>(site, spelling.name);
  const auto get_dimensions = ask<int (*)(int, int, int*)>(site, spelling.dimensions);
  const auto get_type = ask<int (*)(int, int, int*)>(site, spelling.variable_type);
  char path[kPathBytes];
  char name[kGroupBytes + kNameBytes];
  int dimensions = 0, type = 0;
  if (get_name == nullptr || get_dimensions == nullptr || get_type == nullptr ||
      get_name(access.file, access.variable, name) != 0 ||
      get_dimensions(access.file, access.variable, &dimensions) != 0 ||
      get_type(access.file, access.variable, &type) != 0 ||
      !path_of(site, spelling, access.file, path)) {
    return {};
  }
  add_group(site, spelling, access.file, name);
  const Variable made{key,
                      site.copy(),
                      now,
                      name_of_variable(spelling.library, path, name),
                      static_cast<uint32_t>(dimensions),
                      bytes_of_external(site, spelling, access.file, type)};
  base::store(&slot.key, uint64_t{0});
  slot.copy = made.copy;
  slot.generation = made.generation;
  slot.name = made.name;
  slot.dimensions = made.dimensions;
  slot.element_bytes = made.element_bytes;
  base::store(&slot.key, key);
  return made;
}

uint64_t product(const int64_t* counts, uint32_t dimensions) {
  uint64_t elements = 1;
  for (uint32_t i = 0; i < dimensions; ++i)
    elements *= counts[i] > 0 ? static_cast<uint64_t>(counts[i]) : 0;
  return elements;
}

uint64_t whole(const CallSite& site, const NetcdfAccess& access, uint32_t dimensions) {
  const Spelling& spelling = spelling_of(access.library);
  const auto get_ids = ask<int (*)(int, int, int*)>(site, spelling.dimension_ids);
  const auto get_length = ask<int (*)(int, int, int64_t*)>(site, spelling.dimension_length);
  int ids[kDimensions];
  if (get_ids == nullptr || get_length == nullptr || dimensions > kDimensions ||
      get_ids(access.file, access.variable, ids) != 0)
    return 0;
  uint64_t elements = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    int64_t length = 0;
    if (get_length(access.file, ids[i], &length) != 0) return 0;
    elements *= static_cast<uint64_t>(length);
  }
  return elements;
}

uint64_t elements_of(const CallSite& site, const NetcdfAccess& access, uint32_t dimensions) {
  switch (access.extent) {
    case Extent::one: return 1;
    case Extent::whole: return whole(site, access, dimensions);
    case Extent::counts:
      return access.counts != nullptr ? product(access.counts, dimensions)
                                      : whole(site, access, dimensions);
    case Extent::pieces: break;
  }
  uint64_t elements = 0;
  for (int i = 0; i < access.pieces; ++i) {
    const int64_t* const counts = access.piece_counts != nullptr ? access.piece_counts[i] : nullptr;
    elements += counts != nullptr ? product(counts, dimensions) : 1;
  }
  return elements;
}

// Bytes of a buffer of MPI's types; -1: it says nothing.
int64_t bytes_of_buffer(const NetcdfAccess& access) {
  if (access.elements < 0) return -1;
  const int64_t bytes = bytes_of_type(access.type);
  return bytes >= 0 ? bytes * access.elements : -1;
}

}  // namespace

void forget_netcdf_variables() { base::fetch_add(&generation, 1u); }

// Counts are looked at when the library has accepted the call: what it was given then can be read.
void end_netcdf_access(const CallSite& site, const NetcdfAccess& access, int result,
                       uint64_t begun) {
  const Span span{begun, base::ticks()};
  const int before = errno;
  const Variable variable = look_up(site, access);
  uint64_t bytes = 0;
  if (result == 0) {
    const int64_t reported = bytes_of_buffer(access);
    const uint32_t unit = access.element_bytes != 0 ? access.element_bytes : variable.element_bytes;
    bytes = reported >= 0 ? static_cast<uint64_t>(reported)
                          : unit * elements_of(site, access, variable.dimensions);
  }
  end_library_call(
      {access.op, layer_of(access.library), wire::numbered(access.function), variable.name, bytes,
       result != 0},
      span);
  errno = before;
}

uint32_t name_of_netcdf(const CallSite& site, Library library, int file) {
  char path[kPathBytes];
  return path_of(site, spelling_of(library), file, path)
             ? trace::process().names().path_id(without_file_system(path))
             : 0;
}

void end_netcdf_call(Op op, wire::Function function, Library library, uint32_t name, int result,
                     uint64_t begun) {
  const Span span{begun, base::ticks()};
  end_library_call({op, layer_of(library), wire::numbered(function), name, 0, result != 0}, span);
}

}  // namespace weir::hook
