// SPDX-License-Identifier: Apache-2.0
#include "output/format/zarr/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "output/format/chunks/codec.h"
#include "output/format/intact.h"
#include "output/format/publish.h"
#include "output/transport/team.h"

namespace weir::output::zarr {
namespace {

// A text appears under its name whole, or not at all.
Status write_text(const std::string& path, const std::string& text, bool sync) {
  const std::string part = path + ".part";
  Result<PosixFile> file = PosixFile::open(part, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.ok()) return file.status();
  WEIR_TRY(file->write_at(text.data(), text.size(), 0));
  if (sync) WEIR_TRY(file->sync());
  WEIR_TRY(file->close());
  return publish_file(part, path, true);
}

Status make_directory(const std::string& path) {
  return ::mkdir(path.c_str(), 0777) == 0 || errno == EEXIST ? Status()
                                                             : file_error("create", path, errno);
}

}  // namespace

ZarrFile::ZarrFile(FileDescription description, const std::string& path, const FileOptions& options,
                   Team& owners)
    : rounded_(description.variables), owners_(owners) {
  description_ = std::move(description);
  path_ = path;
  options_ = options;
  for (const Variable& v : description_.variables) arrays_.push_back(array_of(description_, v));
  for (const Array& a : arrays_) bands_.emplace_back(a.chunk, size_of(a.type));
  series_.resize(arrays_.size());
}

Status ZarrFile::prepare_directory() const {
  std::error_code error;
  const std::filesystem::path path(path_);
  if (std::filesystem::exists(path, error)) {
    const bool ours = std::filesystem::exists(path / "zarr.json", error) ||
                      std::filesystem::is_empty(path, error);
    if (!ours)
      return {WEIR_E_FILE,
              "cannot create " + path_ + ": it is there already and is not a Zarr store"};
    std::filesystem::remove_all(path, error);
    if (error) return file_error("remove the old", path_, error.value());
  }
  return make_directory(path_);
}

Status ZarrFile::create() {
  WEIR_TRY(prepare_directory());
  for (size_t v = 0; v < arrays_.size(); v++) {
    WEIR_TRY(make_directory(directory_of(v)));
    if (arrays_[v].how == How::kWhole && !description_.variables[v].values.empty())
      WEIR_TRY(write_coordinate(v));
  }
  return write_metadata(0);
}

Status ZarrFile::write_coordinate(size_t v) const {
  const Variable& variable = description_.variables[v];
  const std::string path =
      directory_of(v) + "/" + Array::key(std::vector<int64_t>(variable.dimensions.size(), 0));
  Result<PosixFile> file = PosixFile::open(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.ok()) return file.status();
  const std::vector<float> narrow(variable.values.begin(), variable.values.end());
  const std::vector<int32_t> whole(variable.values.begin(), variable.values.end());
  const void* data = variable.values.data();
  if (variable.type == WEIR_FLOAT32) data = narrow.data();
  if (variable.type == WEIR_INT32) data = whole.data();
  WEIR_TRY(file->write_at(data, variable.values.size() * size_of(variable.type), 0));
  return file->close();
}

// The group last: it is what readers of a store open.
Status ZarrFile::write_metadata(int64_t records) {
  records_ = records;
  for (size_t v = 0; v < arrays_.size(); v++) {
    const Variable& variable = description_.variables[v];
    if (!variable.over_time && records > 0) continue;
    WEIR_TRY(write_text(directory_of(v) + "/zarr.json",
                        array_json(description_, variable, arrays_[v], records), options_.sync));
  }
  return write_text(path_ + "/zarr.json", group_json(description_, arrays_, records),
                    options_.sync);
}

Status ZarrFile::write_series(size_t v, int64_t record, int64_t first, int64_t count,
                              const char* data) {
  const Array& a = arrays_[v];
  const int64_t elements = a.chunk.elements(), size = a.element_bytes(),
                chunk = record / kSeriesRecords;
  Series& series = series_[v];
  if (series.chunk != chunk) {
    std::vector<int64_t> grid(description_.variables[v].dimensions.size() + 1, 0);
    grid[0] = chunk;
    Result<PosixFile> file =
        PosixFile::open(directory_of(v) + "/" + Array::key(grid), O_RDWR | O_CREAT);
    if (!file.ok()) return file.status();
    WEIR_TRY(file->resize(kSeriesRecords * elements *
                          size));  // a chunk is whole, what is not written yet is zero
    series.file = std::move(*file);
    series.chunk = chunk;
  }
  return series.file.write_at(data, static_cast<size_t>(count * size),
                              (record % kSeriesRecords * elements + first) * size);
}

Status ZarrFile::emit(size_t v, int64_t record, int64_t band, const char* data) {
  const Array& a = arrays_[v];
  const int64_t shard_index = a.shard.band_of(a.chunk.first_of(band));
  const auto key = std::tuple(v, record, shard_index);
  auto open = shards_.find(key);
  if (open == shards_.end()) {
    const std::string path = directory_of(v) + "/" + a.shard_key(record, shard_index);
    Result<Shard> made = Shard::create(path, a.chunks_in_shard(), a.chunks_present(shard_index));
    if (!made.ok()) return made.status();
    open = shards_.emplace(key, std::move(*made)).first;
  }
  const size_t bytes = static_cast<size_t>(a.chunk_bytes());
  const bool compressed = a.compression.kind != Compression::Kind::kNone;
  if (compressed) data = rounded_.round(v, a.chunk, band, data);
  for (int64_t c = 0; c < a.chunk.chunks_per_band(); c++) {
    const char* chunk = data;
    size_t n = bytes;
    if (!a.chunk.contiguous() || a.chunk.count_of(band) != a.chunk.band_elements()) {
      cut_.resize(bytes);
      a.chunk.cut(band, c, data, size_of(a.type), cut_.data());
      chunk = cut_.data();
    }
    if (compressed) {
      packed_.clear();
      WEIR_TRY(chunks::compress(a.compression, chunk, bytes, packed_, chunks::Container::kGzip));
      chunk = packed_.data();
      n = packed_.size();
      rounded_.add(v, bytes, n);
    }
    WEIR_TRY(open->second.append(a.place_in_shard(a.chunk.start_of(band, c)), chunk, n));
  }
  if (!open->second.complete()) return {};
  const Status finished = open->second.finish(options_.sync);
  shards_.erase(open);
  return finished;
}

Status ZarrFile::write(int variable, int64_t record, int64_t first, int64_t count,
                       const void* data) {
  if (!failed_.ok()) return failed_;
  const size_t v = static_cast<size_t>(variable);
  if (arrays_[v].how == How::kSeries) {
    failed_ = write_series(v, record, first, count, static_cast<const char*>(data));
  } else if (arrays_[v].how == How::kSharded) {
    failed_ = bands_[v].add(
        record, first, count, data,
        [&](int64_t r, int64_t band, const char* whole) { return emit(v, r, band, whole); });
  }
  return failed_;
}

Status ZarrFile::end_record(int64_t record) {
  for (const chunks::Bands& bands : bands_) {
    if (failed_.ok() && (!bands.empty() || !shards_.empty())) {
      failed_ = Status(WEIR_E_INTERNAL,
                       path_ + ": a record ended with a shard of which only a part was written");
    }
  }
  for (Series& s : series_) {
    if (failed_.ok() && options_.sync && s.chunk >= 0) failed_ = s.file.sync();
  }
  WEIR_TRY(owners_.agree(failed_));
  Status counted;
  if (owners_.rank() == 0) counted = write_metadata(record + 1);
  return owners_.agree(counted);
}

// All that readers begin with is known: the metadata, and the coordinates' lengths.
Status ZarrFile::check_intact() const {
  const auto is_whole = [](const std::string& name, const std::string& expected,
                           const std::string& or_this) {
    Result<PosixFile> file = open_written(name);
    if (!file.ok()) return file.status();
    Result<std::string> there = read_all(*file);
    if (!there.ok()) return there.status();
    if (*there == expected || *there == or_this) return Status();
    return not_intact(name, "other metadata of " + std::to_string(there->size()) + " bytes",
                      "the " + std::to_string(expected.size()) + " bytes that were written");
  };
  for (size_t v = 0; v < arrays_.size(); v++) {
    const Variable& variable = description_.variables[v];
    const std::string directory = directory_of(v) + "/";
    const std::string metadata = array_json(description_, variable, arrays_[v], records_);
    // An array without time may be of an earlier run.
    WEIR_TRY(is_whole(directory + "zarr.json", metadata, with_short_missing(metadata, variable)));
    if (arrays_[v].how != How::kWhole || variable.values.empty()) continue;
    Result<PosixFile> file =
        open_written(directory + Array::key(std::vector<int64_t>(variable.dimensions.size(), 0)));
    WEIR_TRY(file.status());
    WEIR_TRY(expect_length(
        *file, static_cast<int64_t>(variable.values.size() * size_of(variable.type))));
  }
  const std::string group = group_json(description_, arrays_, records_);
  return is_whole(path_ + "/zarr.json", group, group);
}

Status ZarrFile::close() {
  shards_.clear();
  for (Series& s : series_) {
    const Status closed = s.file.close();
    if (failed_.ok()) failed_ = closed;
  }
  if (failed_.ok() && owners_.rank() == 0) failed_ = check_intact();
  return owners_.agree(failed_);
}

}  // namespace weir::output::zarr
