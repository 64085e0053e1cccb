// SPDX-License-Identifier: Apache-2.0
// Zarr v3: a directory with an array for each variable, sharded, compressed by zstd or gzip where
// that is asked for, metadata consolidated. Each owner writes whole shards, so nobody meets
// anybody; the arrays' lengths in time grow when a record is complete.
#include <fcntl.h>
#include <unistd.h>

#include "output/format/intact.h"
#include "output/format/reader.h"
#include "output/format/zarr/file.h"
#include "output/format/zarr/reader.h"
#include "output/transport/team.h"

namespace weir::output::zarr {
namespace {

constexpr int64_t kMostBandBytes = int64_t{1} << 30;

Result<std::string> read_text(const std::string& path) {
  Result<PosixFile> file = PosixFile::open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  return read_all(*file);
}

}  // namespace

class ZarrFormat : public Format {
 public:
  using Format::Format;
  Status check(const FileDescription& description) const override;
  Status same(const FileDescription& description, const std::string& path) const override;
  int64_t granule(const FileDescription& description, int variable) const override;
  // A store that is there already is removed; a directory that is none is refused.
  Result<std::unique_ptr<File>> create(const FileDescription& description, const std::string& path,
                                       const FileOptions& options, Team& owners) override;
  Result<std::unique_ptr<File>> open(const FileDescription& description, const std::string& path,
                                     const FileOptions& options, Team& owners,
                                     int64_t records) override;
  std::string selects_records() const override {
    return "Python: xarray.open_zarr(IN).isel(time=slice(N)).to_zarr(OUT)";
  }
  bool is_file(const std::string& path) const override {
    return ::access((path + "/zarr.json").c_str(), F_OK) == 0;
  }
  Result<std::unique_ptr<Reader>> reader(const std::string& path) const override {
    return ZarrReader::open(path);
  }
};

Status ZarrFormat::check(const FileDescription& description) const {
  for (const Variable& v : description.variables) {
    const std::string who = "zarr: variable " + v.name + ": ";
    if (!v.chunk.empty() && v.chunk.size() != v.dimensions.size()) {
      return {WEIR_E_ARGUMENT, who + "its chunk has " + std::to_string(v.chunk.size()) +
                                   " numbers, its dimensions without time are " +
                                   std::to_string(v.dimensions.size())};
    }
    for (int64_t n : v.chunk) {
      if (n < 1) return {WEIR_E_ARGUMENT, who + "a chunk of length " + std::to_string(n)};
    }
    WEIR_TRY(check_rounding("zarr", v));
    const Array a = array_of(description, v);
    if (a.how == How::kWhole && v.type != WEIR_FLOAT64 && v.type != WEIR_FLOAT32 &&
        v.type != WEIR_INT32)
      return {WEIR_E_INTERNAL, who + "coordinates are floats or int32"};
    const int64_t band = a.chunk.band_elements() * a.element_bytes();
    if (a.how == How::kSharded && band > kMostBandBytes) {
      return {WEIR_E_ARGUMENT, who + "its chunks need " + std::to_string(band) +
                                   " bytes to be gathered at once (all rows that a chunk has, " +
                                   "over the whole faster dimensions), the limit is 1 GiB; make "
                                   "the chunk's first lengths 1"};
    }
  }
  return {};
}

Status ZarrFormat::same(const FileDescription& description, const std::string& path) const {
  Result<std::unique_ptr<Reader>> reader = open_reader(path);
  if (!reader.ok()) return reader.status();
  const auto differs = [&](const std::string& what) {
    return Status(WEIR_E_FORMAT,
                  "cannot go on with " + path + ": " + what + " is not what the stream writes now");
  };
  for (const Variable& v : description.variables) {
    Result<Found> found = (*reader)->find(v.name);
    if (!found.ok()) return differs("array " + v.name + " (" + found.status().message() + ")");
    Result<std::string> text = read_text(path + "/" + v.name + "/zarr.json");
    if (!text.ok()) return text.status();
    const std::string expected =
        array_json(description, v, array_of(description, v), found->records);
    if (*text != expected && *text != with_short_missing(expected, v))
      return differs("array " + v.name);
    if (v.values.empty() || v.over_time || v.type != WEIR_FLOAT64) continue;
    std::vector<double> values(v.values.size());
    WEIR_TRY((*reader)->read(v.name, 0, 0, static_cast<int64_t>(values.size()), values.data()));
    if (values != v.values) return differs("array " + v.name + ", its values");
  }
  return {};
}

int64_t ZarrFormat::granule(const FileDescription& description, int variable) const {
  const Array a = array_of(description, description.variables[static_cast<size_t>(variable)]);
  return a.how == How::kSharded ? a.shard.granule() : a.chunk.elements();
}

Result<std::unique_ptr<File>> ZarrFormat::create(const FileDescription& description,
                                                 const std::string& path,
                                                 const FileOptions& options, Team& owners) {
  WEIR_TRY(check(description));
  auto file = std::make_unique<ZarrFile>(description, path, options, owners);
  WEIR_TRY(owners.agree(owners.rank() == 0 ? file->create() : Status()));
  return std::unique_ptr<File>(std::move(file));
}

Result<std::unique_ptr<File>> ZarrFormat::open(const FileDescription& description,
                                               const std::string& path, const FileOptions& options,
                                               Team& owners, int64_t records) {
  WEIR_TRY(check(description));
  auto file = std::make_unique<ZarrFile>(description, path, options, owners);
  Status fits;
  if (owners.rank() == 0) {
    fits = check_records(description, path, records);
    if (fits.ok()) fits = file->write_metadata(records);
  }
  WEIR_TRY(owners.agree(fits));
  return std::unique_ptr<File>(std::move(file));
}

}  // namespace weir::output::zarr

namespace weir::output {

Format& zarr_format(const FormatRow& row) {
  static zarr::ZarrFormat format(row);
  return format;
}

}  // namespace weir::output
