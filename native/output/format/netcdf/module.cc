// SPDX-License-Identifier: Apache-2.0
#include "output/format/netcdf/module.h"

#include "output/format/netcdf/parts.h"

namespace weir::output::netcdf {

constexpr Module kModule = {
    kModuleVersion, create, same,  open_file, find,        read,   close_file,
    grow,           extend, place, commit,    find_damage, finish, recover};

extern "C" __attribute__((visibility("default"))) const Module* weir_netcdf_module() {
  return &kModule;
}

}  // namespace weir::output::netcdf
