// SPDX-License-Identifier: Apache-2.0
// Whether a file that is there has the definitions that a new one would have: who goes on with it
// writes by them alone. Global attributes may differ: they stay those of the run that began the
// file.
#include <netcdf.h>
#include <netcdf_filter.h>

#include <string>
#include <vector>

#include "output/format/netcdf/open.h"
#include "output/format/netcdf/parts.h"
#include "output/format/netcdf/quiet.h"

namespace weir::output::netcdf {
namespace {

// Two files, or one variable of each; every function says what differs, or nothing.
struct Pair {
  int mine, theirs;
};

std::string compare_attribute(Pair file, Pair variable, const char* name) {
  nc_type types[2] = {};
  size_t lengths[2] = {}, size = 0;
  if (nc_inq_att(file.mine, variable.mine, name, &types[0], &lengths[0]) != NC_NOERR ||
      nc_inq_att(file.theirs, variable.theirs, name, &types[1], &lengths[1]) != NC_NOERR ||
      types[0] != types[1] || lengths[0] != lengths[1] || types[0] > NC_MAX_ATOMIC_TYPE ||
      types[0] == NC_STRING || nc_inq_type(file.mine, types[0], nullptr, &size) != NC_NOERR) {
    return name;
  }
  std::vector<char> a(lengths[0] * size + 1), b(a);
  const bool read = nc_get_att(file.mine, variable.mine, name, a.data()) == NC_NOERR &&
                    nc_get_att(file.theirs, variable.theirs, name, b.data()) == NC_NOERR;
  return read && a == b ? "" : name;
}

std::string compare_attributes(Pair file, Pair variable) {
  int counts[2] = {};
  nc_inq_varnatts(file.mine, variable.mine, &counts[0]);
  nc_inq_varnatts(file.theirs, variable.theirs, &counts[1]);
  for (int i = 0; i < counts[0]; i++) {
    char name[NC_MAX_NAME + 1] = "";
    nc_inq_attname(file.mine, variable.mine, i, name);
    if (const std::string other = compare_attribute(file, variable, name); !other.empty())
      return "attribute " + other;
  }
  return counts[0] == counts[1] ? "" : "the number of attributes";
}

// Chunks and filters of netCDF-4; the classic formats have none.
std::string compare_storage(Pair file, Pair variable, int rank) {
  struct Storage {
    int how = 0, shuffle = 0, deflate = 0, level = 0;
    std::vector<size_t> chunk;
    std::vector<unsigned> filters;
    bool operator==(const Storage&) const = default;
  };
  const auto of = [rank](int id, int v) {
    Storage s;
    s.chunk.resize(static_cast<size_t>(rank) + 1);
    size_t filters = 0;
    nc_inq_var_chunking(id, v, &s.how, s.chunk.data());
    if (s.how != NC_CHUNKED) s.chunk.clear();
    nc_inq_var_deflate(id, v, &s.shuffle, &s.deflate, &s.level);
    if (nc_inq_var_filter_ids(id, v, &filters, nullptr) != NC_NOERR) return s;
    s.filters.resize(filters);
    if (filters > 0) nc_inq_var_filter_ids(id, v, &filters, s.filters.data());
    return s;
  };
  const Storage a = of(file.mine, variable.mine), b = of(file.theirs, variable.theirs);
  if (a.how != b.how || a.chunk != b.chunk) return "its chunks";
  return a == b ? "" : "its compression";
}

std::string compare_dimensions(Pair file, Pair variable, int rank) {
  int a[NC_MAX_VAR_DIMS], b[NC_MAX_VAR_DIMS], unlimited = -1, their_unlimited = -1;
  nc_inq_vardimid(file.mine, variable.mine, a);
  nc_inq_vardimid(file.theirs, variable.theirs, b);
  nc_inq_unlimdim(file.mine, &unlimited);
  nc_inq_unlimdim(file.theirs, &their_unlimited);
  for (int d = 0; d < rank; d++) {
    char names[2][NC_MAX_NAME + 1] = {};
    size_t lengths[2] = {};
    nc_inq_dim(file.mine, a[d], names[0], &lengths[0]);
    nc_inq_dim(file.theirs, b[d], names[1], &lengths[1]);
    if ((a[d] == unlimited) != (b[d] == their_unlimited))
      return std::string("dimension ") + names[0] + " (unlimited in one of both)";
    if (std::string(names[0]) != names[1] || (a[d] != unlimited && lengths[0] != lengths[1]))
      return std::string("dimension ") + names[0];
  }
  return "";
}

std::string compare_values(Pair file, Pair variable, size_t count) {
  std::vector<double> a(count), b(count);
  nc_get_var_double(file.mine, variable.mine, a.data());
  nc_get_var_double(file.theirs, variable.theirs, b.data());
  return a == b ? "" : "its values";
}

std::string compare_variable(Pair file, int id, const Variable& description) {
  Pair variable{id, -1};
  nc_type types[2] = {};
  int ranks[2] = {};
  if (nc_inq_varid(file.theirs, description.name.c_str(), &variable.theirs) != NC_NOERR)
    return "it is not there";
  nc_inq_var(file.mine, variable.mine, nullptr, &types[0], &ranks[0], nullptr, nullptr);
  nc_inq_var(file.theirs, variable.theirs, nullptr, &types[1], &ranks[1], nullptr, nullptr);
  if (types[0] != types[1]) return "its type";
  if (ranks[0] != ranks[1]) return "its number of dimensions";
  std::string other = compare_dimensions(file, variable, ranks[0]);
  if (other.empty()) other = compare_attributes(file, variable);
  if (other.empty()) other = compare_storage(file, variable, ranks[0]);
  const bool is_coordinate =
      !description.over_time &&
      !description.values.empty();  // lon and lat in parts are not: ranks hold them
  if (other.empty() && is_coordinate)
    other = compare_values(file, variable, description.values.size());
  return other;
}

std::string compare_files(Pair file, const FileDescription& description) {
  int formats[2] = {}, counts[2] = {};
  nc_inq_format(file.mine, &formats[0]);
  nc_inq_format(file.theirs, &formats[1]);
  if (formats[0] != formats[1]) return "the format";
  nc_inq_nvars(file.mine, &counts[0]);
  nc_inq_nvars(file.theirs, &counts[1]);
  for (size_t v = 0; v < description.variables.size(); v++) {
    const Variable& variable = description.variables[v];
    if (const std::string other = compare_variable(file, static_cast<int>(v), variable);
        !other.empty())
      return "variable " + variable.name + ", " + other;
  }
  return counts[0] == counts[1] ? "" : "the number of variables";
}

}  // namespace

bool same(const FileDescription& description, const char* path, Kind kind, Why& why) {
  const Quiet quiet;
  register_zstd();
  Pair file{-1, -1};
  std::string doing;
  if (int error = define_in_memory(description, kind, &file.mine, &doing); error != NC_NOERR) {
    return say(why, ("cannot " + doing).c_str(), "a file in memory",
               quiet.cause(nc_strerror(error)));
  }
  const int error = open_to_read(path, 0, &file.theirs);
  const std::string other = error == NC_NOERR ? compare_files(file, description) : "";
  if (error == NC_NOERR) nc_close(file.theirs);
  nc_close(file.mine);
  if (error != NC_NOERR) return say(why, "cannot open", path, quiet.cause(nc_strerror(error)));
  return other.empty() || say(why, "cannot go on with", path,
                              (other + " is not what the stream writes now").c_str());
}

}  // namespace weir::output::netcdf
