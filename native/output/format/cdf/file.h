// SPDX-License-Identifier: Apache-2.0
// A classic file whose header is written: owners put data in place, the first of them counts
// records.
#pragma once

#include "output/format/cdf/header.h"
#include "output/format/format.h"
#include "output/format/posix_file.h"

namespace weir::output::cdf {

// The number of records in a file's header.
Status write_count(PosixFile& file, int version, int64_t records);

class CdfFile : public File {
 public:
  // [collective] The header is read by rank 0 alone: others may not see a file of another node yet.
  static Result<std::unique_ptr<File>> open(const std::string& path, const FileOptions& options,
                                            Team& owners);

  Status write(int variable, int64_t record, int64_t first, int64_t count,
               const void* data) override;
  Status end_record(int64_t record) override;
  Status close() override;

 private:
  CdfFile(PosixFile file, Header header, bool sync, Team& owners)
      : file_(std::move(file)), header_(std::move(header)), sync_(sync), owners_(owners) {}
  Status write_records(int64_t records);
  Status lengthen(int64_t records);
  // Of the first owner, when the file is complete.
  Status check_intact() const;
  // The first failure of a write is remembered: a record with a hole must not be counted.
  Status remember(Status status);

  PosixFile file_;
  Header header_;
  bool sync_;
  Team& owners_;
  Status failed_;
};

}  // namespace weir::output::cdf
