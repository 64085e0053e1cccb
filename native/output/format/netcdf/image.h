// SPDX-License-Identifier: Apache-2.0
// A new netCDF-4 file as bytes. HDF5 1.10 does not survive a file system that refuses its writes:
// what it could not flush crashes nc_abort, or the end of the process. So it makes new files in
// memory (NC_DISKLESS), and writing them is weir's own, with the true cause when that fails.
#pragma once

#include <hdf5.h>

#include <vector>

namespace weir::output::netcdf {

// What nc_create is given as a path for that.
constexpr const char* kInMemory = "weir-file-in-memory";

// Of the file of that name, which is open and synchronised: as it would be when it was closed.
// Empty: HDF5 did not give them.
std::vector<char> image_bytes();

// HDF5's handle of it, which is netCDF's to close; negative: there is none.
hid_t file_in_memory();

// An existing file is emptied and keeps its inode. 0 or an errno; after an error the file is empty.
int write_image(const std::vector<char>& bytes, const char* path);

}  // namespace weir::output::netcdf
