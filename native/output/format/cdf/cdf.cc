// SPDX-License-Identifier: Apache-2.0
// CDF-2 and CDF-5. The netCDF library writes header and coordinates; each owner writes its ranges
// in place, big-endian, by big pwrites; the number of records in the header grows after the data,
// so that the file is complete up to the last finished record at any time.
#include <fcntl.h>

#include "output/format/cdf/file.h"
#include "output/format/modules.h"
#include "output/model/text.h"
#include "output/transport/team.h"

namespace weir::output::cdf {
namespace {

// Limits of the specification: what the size of a variable's record may be in CDF-2 (the last one
// might be larger; weir does not use that), and the length of a dimension.
constexpr int64_t kMostBytesCdf2 = (int64_t{1} << 32) - 4;
constexpr int64_t kMostLengthCdf2 = (int64_t{1} << 31) - 4;

Status refuse(const std::string& what) {
  return {WEIR_E_ARGUMENT, "cdf2: " + what + "; use format cdf5"};
}

// The file is what the description says, in the same order.
Status compare(const FileDescription& description, const Header& header, int version,
               const std::string& path) {
  const auto other = [&](const std::string& what) {
    return Status(WEIR_E_FORMAT,
                  "cannot go on with " + path + ": " + what + " is not what the stream writes now");
  };
  if (header.version != version) return other("its version of classic netCDF");
  if (header.variables.size() != description.variables.size())
    return other("its number of variables");
  for (size_t i = 0; i < header.variables.size(); i++) {
    const Variable& there = header.variables[i];
    const output::Variable& here = description.variables[i];
    if (there.name != here.name) return other("variable " + there.name);
    const int64_t bytes = description.elements(here) * static_cast<int64_t>(size_of(here.type));
    if (there.type != here.type || there.over_time != here.over_time || there.bytes != bytes)
      return other("variable " + there.name);
  }
  return {};
}

// A writer that died may have counted the record that is to be written again.
Status take_back(const std::string& path, const Header& header, int64_t records) {
  if (header.records == records) return {};
  if (header.records != records + 1) {
    return {WEIR_E_FORMAT, "cannot go on with " + path + ": it has " +
                               std::to_string(header.records) + " records, not " +
                               std::to_string(records)};
  }
  Result<PosixFile> file = PosixFile::open(path, O_WRONLY);
  return file.ok() ? write_count(*file, header.version, records) : file.status();
}

}  // namespace

class CdfFormat : public Format {
 public:
  CdfFormat(const FormatRow& row, int version) : Format(row), version_(version) {}
  Status ready() const override;
  Status check(const FileDescription& description) const override;
  Status same(const FileDescription& description, const std::string& path) const override;
  int64_t granule(const FileDescription&, int) const override { return 1; }
  Result<std::unique_ptr<File>> create(const FileDescription& description, const std::string& path,
                                       const FileOptions& options, Team& owners) override;
  Result<std::unique_ptr<File>> open(const FileDescription& description, const std::string& path,
                                     const FileOptions& options, Team& owners,
                                     int64_t records) override;

 private:
  Status create_header(const FileDescription& description, const std::string& path) const;
  int version_;
};

Status CdfFormat::ready() const {
  std::string why;
  return netcdf_module(&why) ? Status() : Status(WEIR_E_FORMAT, std::string(name()) + ": " + why);
}

Status CdfFormat::check(const FileDescription& description) const {
  for (const output::Variable& v : description.variables) {
    if (v.compression.kind != Compression::Kind::kNone) {
      return {WEIR_E_ARGUMENT, std::string(name()) + ": variable " + v.name +
                                   " asks for compression, which classic netCDF has not; " +
                                   "use format " + one_of(format_names(true)) +
                                   ", or compression none"};
    }
    WEIR_TRY(check_rounding(name(), v));
    if (version_ == 5) continue;
    if (v.type == WEIR_INT64) return refuse("variable " + v.name + " is of 64-bit integers");
    const int64_t bytes = description.elements(v) * static_cast<int64_t>(size_of(v.type));
    if (bytes > kMostBytesCdf2)
      return refuse("variable " + v.name + " has " + std::to_string(bytes) +
                    " bytes a record, the limit is 4 GiB");
  }
  for (const Dimension& d : description.dimensions) {
    if (version_ == 2 && d.size > kMostLengthCdf2)
      return refuse("dimension " + d.name + " has length " + std::to_string(d.size));
  }
  return {};
}

Status CdfFormat::same(const FileDescription& description, const std::string& path) const {
  WEIR_TRY(ready());
  const std::lock_guard lock(netcdf_mutex());
  netcdf::Why why;
  const bool is = netcdf_module(nullptr)->same(
      description, path.c_str(), version_ == 2 ? netcdf::Kind::kCdf2 : netcdf::Kind::kCdf5, why);
  return is ? Status() : Status(WEIR_E_FORMAT, why.text);
}

Status CdfFormat::create_header(const FileDescription& description, const std::string& path) const {
  WEIR_TRY(ready());
  const std::lock_guard lock(netcdf_mutex());
  netcdf::Why why;
  if (!netcdf_module(nullptr)->create(description, path.c_str(),
                                      version_ == 2 ? netcdf::Kind::kCdf2 : netcdf::Kind::kCdf5,
                                      why)) {
    return {WEIR_E_FILE, why.text};
  }
  return {};
}

Result<std::unique_ptr<output::File>> CdfFormat::create(const FileDescription& description,
                                                        const std::string& path,
                                                        const FileOptions& options, Team& owners) {
  WEIR_TRY(check(description));  // the same on all ranks
  Status made;
  if (owners.rank() == 0) {
    if (!options.hints.empty()) made = owners.create_file(path, options.hints);
    if (made.ok()) made = create_header(description, path);
  }
  WEIR_TRY(owners.agree(made));
  return CdfFile::open(path, options, owners);
}

Result<std::unique_ptr<output::File>> CdfFormat::open(const FileDescription& description,
                                                      const std::string& path,
                                                      const FileOptions& options, Team& owners,
                                                      int64_t records) {
  Status fits;
  if (owners.rank() == 0) {
    Result<std::vector<char>> bytes = read_header(path);
    fits = bytes.status();
    if (fits.ok()) {
      Result<Header> header = parse_header(*bytes);
      fits = header.ok() ? compare(description, *header, version_, path) : header.status();
      if (fits.ok()) fits = take_back(path, *header, records);
    }
  }
  WEIR_TRY(owners.agree(fits));
  return CdfFile::open(path, options, owners);
}

}  // namespace weir::output::cdf

namespace weir::output {

Format& cdf2_format(const FormatRow& row) {
  static cdf::CdfFormat format(row, 2);
  return format;
}

Format& cdf5_format(const FormatRow& row) {
  static cdf::CdfFormat format(row, 5);
  return format;
}

}  // namespace weir::output
