// SPDX-License-Identifier: Apache-2.0
#include "output/format/cdf/file.h"

#include <fcntl.h>

#include <algorithm>

#include "output/format/intact.h"
#include "output/transport/team.h"

namespace weir::output::cdf {

Result<std::unique_ptr<File>> CdfFile::open(const std::string& path, const FileOptions& options,
                                            Team& owners) {
  std::vector<char> bytes;
  Status mine;
  if (owners.rank() == 0) {
    Result<std::vector<char>> read = read_header(path);
    mine = read.status();
    if (read.ok()) bytes = std::move(*read);
  }
  WEIR_TRY(owners.agree(mine));
  WEIR_TRY(owners.broadcast(bytes, 0));
  Result<Header> header = parse_header(bytes);
  Result<PosixFile> file =
      header.ok() ? PosixFile::open(path, O_RDWR) : Result<PosixFile>(header.status());
  WEIR_TRY(owners.agree(file.status()));
  return std::unique_ptr<File>(
      new CdfFile(std::move(*file), std::move(*header), options.sync, owners));
}

Status write_count(PosixFile& file, int version, int64_t records) {
  unsigned char bytes[8];
  const size_t n = records_bytes(version);
  for (size_t i = 0; i < n; i++) bytes[i] = static_cast<unsigned char>(records >> 8 * (n - 1 - i));
  return file.write_at(bytes, n, kRecordsOffset);
}

Status CdfFile::remember(Status status) {
  if (!status.ok() && failed_.ok()) failed_ = status;
  return status;
}

Status CdfFile::write(int variable, int64_t record, int64_t first, int64_t count,
                      const void* data) {
  const Variable& v = header_.variables[static_cast<size_t>(variable)];
  const int64_t size = static_cast<int64_t>(size_of(v.type));
  const int64_t place = v.begin + (v.over_time ? record * header_.record_bytes : 0) + first * size;
  return remember(file_.write_at(data, static_cast<size_t>(count * size), place));
}

// Readers want the file to be as long as its records say, padding included, which nobody writes.
Status CdfFile::lengthen(int64_t records) {
  const int64_t end = header_.records_begin + records * header_.record_bytes;
  Result<int64_t> size = file_.size();
  if (!size.ok()) return size.status();
  return *size < end ? file_.resize(end) : Status();
}

Status CdfFile::write_records(int64_t records) {
  if (header_.padded) WEIR_TRY(lengthen(records));
  WEIR_TRY(write_count(file_, header_.version, records));
  return sync_ ? file_.sync() : Status();
}

// First everybody's data, then the number that makes them visible.
Status CdfFile::end_record(int64_t record) {
  if (failed_.ok() && sync_) failed_ = file_.sync();
  WEIR_TRY(owners_.agree(failed_));
  Status counted;
  if (owners_.rank() == 0) counted = write_records(record + 1);
  file_.expect_whole();
  header_.records = record + 1;
  return owners_.agree(counted);
}

Status CdfFile::check_intact() const {
  const std::string& path = file_.path();
  const int64_t records = header_.records;
  Result<PosixFile> file = open_written(path);
  if (!file.ok()) return file.status();
  const char magic[] = {'C', 'D', 'F', static_cast<char>(header_.version)};
  WEIR_TRY(expect_bytes(*file, 0, {magic, sizeof magic}));
  Result<std::vector<char>> bytes = read_header(path);
  Result<Header> there = bytes.ok() ? parse_header(*bytes) : Result<Header>(bytes.status());
  const auto same_place = [](const Variable& a, const Variable& b) { return a.begin == b.begin; };
  if (!there.ok() || !std::equal(header_.variables.begin(), header_.variables.end(),
                                 there->variables.begin(), there->variables.end(), same_place))
    return not_intact(path, "another header", "the header with which it was created");
  if (there->records != records) {
    return not_intact(path, std::to_string(there->records) + " records in its header",
                      std::to_string(records));
  }
  int64_t end = header_.end;
  for (const Variable& v : header_.variables)
    end = std::max(end, v.begin + v.bytes + (v.over_time ? records - 1 : 0) * header_.record_bytes);
  return expect_length(*file, end);
}

Status CdfFile::close() {
  Status mine = failed_;
  if (mine.ok() && sync_) mine = file_.sync();
  const Status closed = file_.close();
  if (mine.ok()) mine = closed;
  if (mine.ok() && owners_.rank() == 0) mine = check_intact();
  return owners_.agree(mine);
}

}  // namespace weir::output::cdf
