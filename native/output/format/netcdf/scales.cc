// SPDX-License-Identifier: Apache-2.0
// The references between variables and their dimensions in a new netCDF-4 file (HDF5's dimension
// scales: DIMENSION_LIST of a variable, REFERENCE_LIST of a dimension). HDF5's own function reads
// and writes the list of a dimension anew for each variable that has it, which is a sixth of the
// time that a file of a thousand variables takes; here each list is written once.
#include <hdf5.h>

#include <string>
#include <vector>

#include "output/format/netcdf/image.h"
#include "output/format/netcdf/parts.h"

namespace weir::output::netcdf {
namespace {

// What REFERENCE_LIST consists of, in the layout that HDF5's library gives it.
struct User {
  hobj_ref_t variable;
  int dimension;  // which of the variable's
};

bool write_attribute(hid_t set, const char* name, hid_t type, hsize_t count, const void* values) {
  const hid_t space = H5Screate_simple(1, &count, nullptr);
  const hid_t attribute = H5Acreate2(set, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  const bool written = attribute >= 0 && H5Awrite(attribute, type, values) >= 0;
  if (attribute >= 0) H5Aclose(attribute);
  H5Sclose(space);
  return written;
}

bool write_to(hid_t file, const std::string& set, const char* name, hid_t type, hsize_t count,
              const void* values) {
  const hid_t id = H5Dopen2(file, set.c_str(), H5P_DEFAULT);
  const bool written = id >= 0 && write_attribute(id, name, type, count, values);
  if (id >= 0) H5Dclose(id);
  return written;
}

std::vector<int> all_dimensions(const FileDescription& d, const Variable& v) {
  std::vector<int> all = v.dimensions;
  if (v.over_time) all.insert(all.begin(), d.time);
  return all;
}

// A coordinate variable is its dimension's scale, and has none itself.
bool is_scale(const FileDescription& d, const Variable& v, const std::vector<int>& dimensions) {
  return dimensions.size() == 1 &&
         d.dimensions[static_cast<size_t>(dimensions[0])].name == v.name;
}

}  // namespace

bool attach_scales(const FileDescription& d) {
  const hid_t file = file_in_memory();
  if (file < 0) return false;
  std::vector<hobj_ref_t> scales(d.dimensions.size());
  std::vector<std::vector<User>> users(d.dimensions.size());
  for (size_t i = 0; i < scales.size(); i++) {
    if (H5Rcreate(&scales[i], file, d.dimensions[i].name.c_str(), H5R_OBJECT, -1) < 0) return false;
  }
  const hid_t list = H5Tvlen_create(H5T_STD_REF_OBJ),
              user = H5Tcreate(H5T_COMPOUND, sizeof(User));
  bool fine = H5Tinsert(user, "dataset", HOFFSET(User, variable), H5T_STD_REF_OBJ) >= 0 &&
              H5Tinsert(user, "dimension", HOFFSET(User, dimension), H5T_NATIVE_INT) >= 0;
  for (const Variable& v : d.variables) {
    const std::vector<int> dimensions = all_dimensions(d, v);
    if (dimensions.empty() || is_scale(d, v, dimensions)) continue;
    hobj_ref_t self = 0;
    fine = fine && H5Rcreate(&self, file, v.name.c_str(), H5R_OBJECT, -1) >= 0;
    std::vector<hvl_t> lists;
    for (size_t i = 0; i < dimensions.size(); i++) {
      const auto dimension = static_cast<size_t>(dimensions[i]);
      lists.push_back({1, &scales[dimension]});
      users[dimension].push_back({self, static_cast<int>(i)});
    }
    fine = fine && write_to(file, v.name, "DIMENSION_LIST", list, lists.size(), lists.data());
  }
  for (size_t i = 0; i < users.size() && fine; i++) {
    if (users[i].empty()) continue;
    fine = write_to(file, d.dimensions[i].name, "REFERENCE_LIST", user, users[i].size(),
                    users[i].data());
  }
  H5Tclose(user);
  H5Tclose(list);
  return fine;
}

}  // namespace weir::output::netcdf
