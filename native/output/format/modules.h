// SPDX-License-Identifier: Apache-2.0
// Finding and loading weir-format-netcdf.so and weir-format-grib.so, beside libweir.so or in the
// directory above it, once in a process.
#pragma once

#include <mutex>
#include <string>

#include "output/format/eccodes/module.h"
#include "output/format/netcdf/module.h"

namespace weir::output {

// Null: *why says what is missing and what to install.
const netcdf::Module* netcdf_module(std::string* why);
const eccodes::Module* eccodes_module(std::string* why);

// Held around each call into the module.
std::mutex& netcdf_mutex();
std::mutex& eccodes_mutex();

}  // namespace weir::output
