// SPDX-License-Identifier: Apache-2.0
// A netCDF-4 file with its owners. Rank 0 has HDF5's handle. The places of record r + 1's
// uncompressed chunks are settled, in memory, when record r ends, so that owners write without
// asking; the metadata in the file follow when the record is complete.
#pragma once

#include "output/format/chunks/bands.h"
#include "output/format/chunks/rounded.h"
#include "output/format/netcdf4/packed.h"
#include "output/format/netcdf4/storage.h"

namespace weir::output::netcdf4 {

class Netcdf4File : public File {
 public:
  // [collective] The file exists and has `records` records.
  static Result<std::unique_ptr<File>> open(const FileDescription& description,
                                            std::vector<Stored> storage, const std::string& path,
                                            const FileOptions& options, Team& owners,
                                            int64_t records);
  ~Netcdf4File() override;

  Status write(int variable, int64_t record, int64_t first, int64_t count,
               const void* data) override;
  Status end_record(int64_t record) override;
  Status close() override;
  std::vector<Saving> savings() const override { return rounded_.savings(); }

 private:
  Netcdf4File(const FileDescription& description, std::vector<Stored> storage,
              const std::string& path, const FileOptions& options, Team& owners);
  Status start(const FileDescription& description, int64_t records);
  Status call(bool done, const netcdf::Why& why) const;
  Status check_intact() const;  // of the first owner, when the file is complete

  // Of rank 0: room and places for the next record.
  Status look_ahead(int64_t record, bool fixed, std::vector<netcdf::Piece>& pieces);
  // [collective] Everybody learns the places.
  Status share_places(const Status& mine, int64_t record, bool fixed,
                      std::vector<netcdf::Piece> pieces);

  Status write_range(const Stored& stored, const std::vector<int64_t>& places, int64_t first,
                     int64_t count, const char* data);
  Status emit(int variable, int64_t band, const char* data);
  // [collective] The compressed chunks of all owners get their places, and are written.
  Status write_packed(int64_t record);
  Status place_packed(int64_t record, const std::vector<std::vector<char>>& lists,
                      std::vector<std::vector<char>>& answers);

  std::vector<Stored> storage_;
  std::vector<chunks::Bands> bands_;
  // Of each variable's chunks in the record that is being written.
  std::vector<std::vector<int64_t>> places_;
  std::string path_;
  FileOptions options_;
  Team& owners_;
  PosixFile file_;
  Packed packed_;
  chunks::Rounded rounded_;
  std::vector<char> cut_, shuffled_;
  const netcdf::Module* module_ = nullptr;
  void* growing_ = nullptr;
  bool packs_ = false;
  Status failed_;
};

}  // namespace weir::output::netcdf4
