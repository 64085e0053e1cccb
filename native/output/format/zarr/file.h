// SPDX-License-Identifier: Apache-2.0
// A Zarr store with its owners.
#pragma once

#include <map>

#include "output/format/chunks/bands.h"
#include "output/format/chunks/rounded.h"
#include "output/format/zarr/array.h"
#include "output/format/zarr/shard.h"

namespace weir::output::zarr {

class ZarrFile : public File {
 public:
  ZarrFile(FileDescription description, const std::string& path, const FileOptions& options,
           Team& owners);

  // On rank 0: directories, coordinates, and metadata for no records.
  Status create();
  // On rank 0: all arrays have this many records.
  Status write_metadata(int64_t records);

  Status write(int variable, int64_t record, int64_t first, int64_t count,
               const void* data) override;
  Status end_record(int64_t record) override;
  Status close() override;
  std::vector<Saving> savings() const override { return rounded_.savings(); }

 private:
  struct Series {
    PosixFile file;
    int64_t chunk = -1;  // of time
  };

  std::string directory_of(size_t variable) const {
    return path_ + "/" + description_.variables[variable].name;
  }
  Status prepare_directory() const;
  Status check_intact() const;  // of the first owner, when the store is complete
  Status write_coordinate(size_t variable) const;
  Status write_series(size_t variable, int64_t record, int64_t first, int64_t count,
                      const char* data);
  // The chunks of a band go into their shard.
  Status emit(size_t variable, int64_t record, int64_t band, const char* data);

  FileDescription description_;
  std::vector<Array> arrays_;
  std::vector<chunks::Bands> bands_;
  std::vector<Series> series_;
  // Open ones, by variable, record and shard.
  std::map<std::tuple<size_t, int64_t, int64_t>, Shard> shards_;
  chunks::Rounded rounded_;
  std::vector<char> cut_, packed_;
  std::string path_;
  FileOptions options_;
  Team& owners_;
  int64_t records_ = 0;  // in the metadata, on rank 0
  Status failed_;
};

}  // namespace weir::output::zarr
