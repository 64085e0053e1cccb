// SPDX-License-Identifier: Apache-2.0
#include "output/format/netcdf/open.h"

#include <fcntl.h>
#include <hdf5.h>
#include <netcdf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace weir::output::netcdf {
namespace {

bool is_hdf5(const char* path) {
  constexpr char kMagic[] = "\x89HDF\r\n\x1a\n";
  char bytes[sizeof kMagic - 1] = {};
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool is = ::pread(fd, bytes, sizeof bytes, 0) == static_cast<ssize_t>(sizeof bytes) &&
                  std::memcmp(bytes, kMagic, sizeof bytes) == 0;
  ::close(fd);
  return is;
}

// When HDF5 (1.10) lists many links and one of them cannot be read, it frees memory that it has not
// filled (H5G__dense_iterate): the process may end. Looked up alone, such a link is an error.
bool can_list_links(const char* path) {
  const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) return true;  // nc__open returns the error
  H5G_info_t info = {};
  bool fine = H5Gget_info(file, &info) >= 0;
  const bool has_index = fine && info.storage_type == H5G_STORAGE_TYPE_DENSE;
  for (hsize_t i = 0; has_index && fine && i < info.nlinks; i++)
    fine = H5Lget_name_by_idx(file, ".", H5_INDEX_NAME, H5_ITER_NATIVE, i, nullptr, 0,
                              H5P_DEFAULT) >= 0;
  H5Fclose(file);
  return fine;
}

std::vector<hid_t> open_files() {
  const ssize_t count = H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_FILE);
  std::vector<hid_t> files(count > 0 ? static_cast<size_t>(count) : 0);
  if (!files.empty()) H5Fget_obj_ids(H5F_OBJ_ALL, H5F_OBJ_FILE, files.size(), files.data());
  return files;
}

// HDF5's own lists of memory have no end after errors in a damaged file: it would print "infinite
// loop closing library" when the process ends. It does not where it is not to print errors.
void print_nothing_at_exit() {
  static const int once = std::atexit([] { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); });
  (void)once;
}

}  // namespace

int open_to_read(const char* path, size_t buffer_bytes, int* file) {
  const bool has_links = is_hdf5(path);
  const std::vector<hid_t> before = has_links ? open_files() : std::vector<hid_t>();
  int error = has_links && !can_list_links(path) ? NC_EHDFERR : NC_NOERR;
  if (error == NC_NOERR) error = nc__open(path, NC_NOWRITE, &buffer_bytes, file);
  if (error == NC_NOERR || !has_links) return error;
  // netCDF (4.9) leaves HDF5's file open when it cannot read the groups in it.
  for (const hid_t left : open_files()) {
    if (std::find(before.begin(), before.end(), left) == before.end()) H5Fclose(left);
  }
  print_nothing_at_exit();
  return error;
}

}  // namespace weir::output::netcdf
