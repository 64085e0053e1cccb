// SPDX-License-Identifier: Apache-2.0
// netCDF-4. netCDF-C makes the file, HDF5's serial library on the first owner keeps its metadata
// and says where chunks go, and all owners write chunks there by themselves, compressed in parallel
// where that is asked for. Why not parallel HDF5: docs/decisions/0016.
#include <fcntl.h>

#include "output/format/modules.h"
#include "output/format/netcdf4/file.h"
#include "output/format/reader.h"
#include "output/transport/team.h"

namespace weir::output::netcdf4 {
namespace {

// HDF5's limit of a chunk, and weir's of what an owner gathers of a variable.
constexpr int64_t kMostChunkBytes = (int64_t{1} << 32) - 1;
constexpr int64_t kMostBandBytes = int64_t{1} << 30;

Status refuse(const Variable& v, const std::string& what) {
  return {WEIR_E_ARGUMENT, "netcdf4: variable " + v.name + ": " + what};
}

// Names that netCDF-4 keeps for what it writes itself.
Status check_attribute(const std::string& owner, const Attribute& attribute) {
  for (const char* kept :
       {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates",
        "_NCProperties", "_NCCOPY", "_IsNetcdf4", "_SuperblockVersion"}) {
    if (attribute.name == kept) {
      return {WEIR_E_ARGUMENT, "netcdf4: " + owner + ": netCDF-4 keeps the attribute name " +
                                   attribute.name +
                                   " for itself; use another one, or another format"};
    }
  }
  return {};
}

Status check_variable(const Variable& v, const Stored& s) {
  for (const Attribute& a : v.attributes) WEIR_TRY(check_attribute("variable " + v.name, a));
  WEIR_TRY(check_rounding("netcdf4", v));
  if (v.dimensions.size() > 7) return refuse(v, "more than 7 dimensions beside time");
  if (!v.chunk.empty() && v.chunk.size() != v.dimensions.size()) {
    return refuse(v, "its chunk has " + std::to_string(v.chunk.size()) +
                         " numbers, its dimensions without time are " +
                         std::to_string(v.dimensions.size()));
  }
  for (int64_t n : v.chunk) {
    if (n < 1) return refuse(v, "a chunk of length " + std::to_string(n));
  }
  if (s.how != How::kInPlace && s.how != How::kPacked) return {};
  if (s.chunk_bytes() > kMostChunkBytes)
    return refuse(v,
                  "a chunk of " + std::to_string(s.chunk_bytes()) + " bytes; the limit is 4 GiB");
  const int64_t band = s.layout.band_elements() * s.element_bytes();
  if (band > kMostBandBytes && (s.how == How::kPacked || !s.layout.contiguous())) {
    return refuse(v,
                  "its chunks need " + std::to_string(band) +
                      " bytes to be gathered at once (all rows that a chunk has, over the whole " +
                      "faster dimensions), the limit is 1 GiB; make the chunk's first lengths 1");
  }
  return {};
}

// Metadata that a writer had decided on and was killed before it had written all of them.
Status recover(const std::string& path) {
  const std::lock_guard lock(netcdf_mutex());
  netcdf::Why why = {};
  return netcdf_module(nullptr)->recover(path.c_str(), why) ? Status()
                                                            : Status(WEIR_E_FILE, why.text);
}

}  // namespace

class Netcdf4Format : public Format {
 public:
  using Format::Format;
  Status ready() const override;
  Status check(const FileDescription& description) const override;
  Status same(const FileDescription& description, const std::string& path) const override;
  int64_t granule(const FileDescription& description, int variable) const override;
  Result<std::unique_ptr<File>> create(const FileDescription& description, const std::string& path,
                                       const FileOptions& options, Team& owners) override;
  Result<std::unique_ptr<File>> open(const FileDescription& description, const std::string& path,
                                     const FileOptions& options, Team& owners,
                                     int64_t records) override;
};

Status Netcdf4Format::ready() const {
  std::string why;
  return netcdf_module(&why) ? Status() : Status(WEIR_E_FORMAT, "netcdf4: " + why);
}

Status Netcdf4Format::check(const FileDescription& description) const {
  for (const Attribute& a : description.attributes) WEIR_TRY(check_attribute("context", a));
  const std::vector<Stored> storage = storage_of(description);
  for (size_t i = 0; i < storage.size(); i++)
    WEIR_TRY(check_variable(description.variables[i], storage[i]));
  return {};
}

Status Netcdf4Format::same(const FileDescription& description, const std::string& path) const {
  WEIR_TRY(ready());
  const std::lock_guard lock(netcdf_mutex());
  netcdf::Why why = {};
  const bool is = netcdf_module(nullptr)->same(with_chunks(description, storage_of(description)),
                                               path.c_str(), netcdf::Kind::kNetcdf4, why);
  return is ? Status() : Status(WEIR_E_FORMAT, why.text);
}

int64_t Netcdf4Format::granule(const FileDescription& description, int variable) const {
  const Stored s = stored(description, description.variables[static_cast<size_t>(variable)]);
  const bool anywhere =
      s.how != How::kPacked && (s.how != How::kInPlace || s.layout.contiguous());
  return anywhere ? 1 : s.layout.granule();
}

Result<std::unique_ptr<File>> Netcdf4Format::create(const FileDescription& description,
                                                    const std::string& path,
                                                    const FileOptions& options, Team& owners) {
  WEIR_TRY(ready());
  WEIR_TRY(check(description));
  std::vector<Stored> storage = storage_of(description);
  Status made;
  if (owners.rank() == 0) {
    if (!options.hints.empty()) made = owners.create_file(path, options.hints);
    // By hand first: the library's message has not the true cause.
    if (made.ok()) made = PosixFile::open(path, O_RDWR | O_CREAT).status();
    if (made.ok()) {
      const std::lock_guard lock(netcdf_mutex());
      netcdf::Why why = {};
      const netcdf::Module* module = netcdf_module(nullptr);
      if (!module->create(with_chunks(description, storage), path.c_str(), netcdf::Kind::kNetcdf4,
                          why))
        made = {WEIR_E_FILE, why.text};
    }
  }
  WEIR_TRY(owners.agree(made));
  return Netcdf4File::open(description, std::move(storage), path, options, owners, 0);
}

Result<std::unique_ptr<File>> Netcdf4Format::open(const FileDescription& description,
                                                  const std::string& path,
                                                  const FileOptions& options, Team& owners,
                                                  int64_t records) {
  WEIR_TRY(ready());
  WEIR_TRY(check(description));
  Status fits;
  if (owners.rank() == 0) {
    fits = recover(path);
    if (fits.ok()) fits = check_records(description, path, records);
  }
  WEIR_TRY(owners.agree(fits));
  return Netcdf4File::open(description, storage_of(description), path, options, owners, records);
}

}  // namespace weir::output::netcdf4

namespace weir::output {

Format& netcdf4_format(const FormatRow& row) {
  static netcdf4::Netcdf4Format format(row);
  return format;
}

}  // namespace weir::output
