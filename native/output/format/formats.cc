// SPDX-License-Identifier: Apache-2.0
#include "output/format/cdf/cdf.h"
#include "output/format/format.h"
#include "output/format/netcdf4/netcdf4.h"
#include "output/format/zarr/zarr.h"

namespace weir::output {

Format* find_format(const std::string& name, std::string* why) {
  static cdf::CdfFormat cdf2(2), cdf5(5);
  static netcdf4::Netcdf4Format netcdf4;
  static zarr::ZarrFormat zarr;
  Format* const all[] = {&cdf2, &cdf5, &netcdf4, &zarr};
  for (Format* format : all) {
    if (name == format->name()) return format;
  }
  if (why) *why = "no format is called " + name + ": cdf5, cdf2, netcdf4, zarr";
  return nullptr;
}

}  // namespace weir::output
