// SPDX-License-Identifier: Apache-2.0
// CDF-2 and CDF-5. The netCDF library writes header and coordinates; each owner writes its ranges in place, big-endian, by big pwrites; the
// number of records in the header grows after the data, so that the file is complete up to the last finished record at any time.
#pragma once

#include "output/format/format.h"

namespace weir::output::cdf {

class CdfFormat : public Format {
 public:
  explicit CdfFormat(int version) : version_(version) {}
  const char* name() const override { return version_ == 2 ? "cdf2" : "cdf5"; }
  ByteOrder byte_order() const override { return ByteOrder::kBig; }
  bool parallel() const override { return true; }
  Status ready() const override;
  Status check(const FileDescription& description) const override;
  Status same(const FileDescription& description, const std::string& path) const override;
  int64_t granule(const FileDescription&, int) const override { return 1; }
  Result<std::unique_ptr<File>> create(const FileDescription& description, const std::string& path, const FileOptions& options,
                                       Team& owners) override;
  Result<std::unique_ptr<File>> open(const FileDescription& description, const std::string& path, const FileOptions& options, Team& owners,
                                     int64_t records) override;

 private:
  Status create_header(const FileDescription& description, const std::string& path) const;
  int version_;
};

}  // namespace weir::output::cdf
