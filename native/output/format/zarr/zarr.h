// SPDX-License-Identifier: Apache-2.0
// Zarr v3: a directory with an array for each variable, sharded, compressed by zstd or gzip where that is asked for, metadata consolidated. Each
// owner writes whole shards, so nobody meets anybody; the arrays' lengths in time grow when a record is complete.
#pragma once

#include "output/format/format.h"

namespace weir::output::zarr {

class ZarrFormat : public Format {
 public:
  const char* name() const override { return "zarr"; }
  ByteOrder byte_order() const override { return ByteOrder::kNative; }
  bool parallel() const override { return true; }
  Status check(const FileDescription& description) const override;
  Status same(const FileDescription& description, const std::string& path) const override;
  int64_t granule(const FileDescription& description, int variable) const override;
  // A store that is there already is removed; a directory that is none is refused.
  Result<std::unique_ptr<File>> create(const FileDescription& description, const std::string& path, const FileOptions& options,
                                       Team& owners) override;
  Result<std::unique_ptr<File>> open(const FileDescription& description, const std::string& path, const FileOptions& options, Team& owners,
                                     int64_t records) override;
};

}  // namespace weir::output::zarr
