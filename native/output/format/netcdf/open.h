// SPDX-License-Identifier: Apache-2.0
// Opening of a file that may be damaged.
#pragma once

#include <cstddef>

namespace weir::output::netcdf {

// nc__open to read, under a Quiet. 0 and *file, or netCDF's error. Nothing of a file that cannot be
// opened stays open.
int open_to_read(const char* path, size_t buffer_bytes, int* file);

}  // namespace weir::output::netcdf
