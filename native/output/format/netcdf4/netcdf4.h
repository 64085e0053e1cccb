// SPDX-License-Identifier: Apache-2.0
// netCDF-4. netCDF-C makes the file, HDF5's serial library on the first owner keeps its metadata and says where chunks go, and all owners
// write chunks there by themselves, compressed in parallel where that is asked for. Why not parallel HDF5: docs/decisions/0016.
#pragma once

#include "output/format/format.h"

namespace weir::output::netcdf4 {

class Netcdf4Format : public Format {
 public:
  const char* name() const override { return "netcdf4"; }
  ByteOrder byte_order() const override { return ByteOrder::kNative; }
  bool parallel() const override { return true; }
  Status ready() const override;
  Status check(const FileDescription& description) const override;
  Status same(const FileDescription& description, const std::string& path) const override;
  int64_t granule(const FileDescription& description, int variable) const override;
  Result<std::unique_ptr<File>> create(const FileDescription& description, const std::string& path, const FileOptions& options,
                                       Team& owners) override;
  Result<std::unique_ptr<File>> open(const FileDescription& description, const std::string& path, const FileOptions& options, Team& owners,
                                     int64_t records) override;
};

}  // namespace weir::output::netcdf4
