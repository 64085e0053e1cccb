// SPDX-License-Identifier: Apache-2.0
#include "output/format/zarr/reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "output/format/chunks/codec.h"
#include "output/format/posix_file.h"
#include "output/format/zarr/crc32c.h"

namespace weir::output::zarr {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostMetadataBytes = 64 << 20;

Result<Json> read_json(const std::string& path) {
  Result<PosixFile> file = PosixFile::open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  Result<int64_t> size = file->size();
  if (!size.ok()) return size.status();
  if (*size > kMostMetadataBytes) return Status(WEIR_E_FORMAT, path + " is too large for metadata");
  std::string text(static_cast<size_t>(*size), ' ');
  WEIR_TRY(file->read_at(text.data(), text.size(), 0));
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Status(WEIR_E_FORMAT, path + " is not JSON");
  return json;
}

// Where a chunk lies in its file: all of the file when it is no shard. bytes < 0: there is no such
// chunk.
struct Place {
  int64_t offset = 0, bytes = 0;
};

Result<Place> find_in_shard(const PosixFile& file, int64_t place, int64_t places) {
  Result<int64_t> size = file.size();
  if (!size.ok()) return size.status();
  const int64_t index_bytes = places * 16 + 4;
  if (*size < index_bytes) return Status(WEIR_E_FORMAT, file.path() + " is too short for a shard");
  std::vector<char> index(static_cast<size_t>(index_bytes));
  WEIR_TRY(file.read_at(index.data(), index.size(), *size - index_bytes));
  uint32_t crc = 0;
  std::memcpy(&crc, index.data() + places * 16, sizeof crc);
  if (crc32c(index.data(), static_cast<size_t>(places) * 16) != crc)
    return Status(WEIR_E_FORMAT, file.path() + ": the shard's index is damaged");
  uint64_t entry[2];
  std::memcpy(entry, index.data() + place * 16, sizeof entry);
  if (entry[0] == ~uint64_t{0} && entry[1] == ~uint64_t{0}) return Place{0, -1};
  if (entry[0] > static_cast<uint64_t>(*size) ||
      entry[1] > static_cast<uint64_t>(*size) - entry[0]) {
    return Status(WEIR_E_FORMAT, file.path() + ": a chunk lies beyond the end of its shard");
  }
  return Place{static_cast<int64_t>(entry[0]), static_cast<int64_t>(entry[1])};
}

Status decode(Codec codec, std::span<const char> from, std::vector<char>& out) {
  if (codec == Codec::kZstd) return chunks::decompress_zstd(from, out.data(), out.size());
  if (codec == Codec::kGzip) return chunks::inflate(from, out.data(), out.size());
  if (from.size() != out.size()) return {WEIR_E_FORMAT, "a chunk has the wrong length"};
  std::memcpy(out.data(), from.data(), out.size());
  return {};
}

}  // namespace

Result<std::unique_ptr<Reader>> ZarrReader::open(const std::string& path) {
  Result<Json> group = read_json(path + "/zarr.json");
  if (!group.ok()) return group.status();
  if (!group->is_object() || group->value("zarr_format", Json()) != 3)
    return Status(WEIR_E_FORMAT, path + " is no store of Zarr v3");
  return std::unique_ptr<Reader>(new ZarrReader(path));
}

Result<const Stored*> ZarrReader::stored(const std::string& variable) {
  auto found = arrays_.find(variable);
  if (found == arrays_.end()) {
    const std::string directory = path_ + "/" + variable;
    if (variable.empty() || variable.find('/') != std::string::npos ||
        ::access((directory + "/zarr.json").c_str(), F_OK) != 0) {
      return Status(WEIR_E_FORMAT, "no variable " + variable + " in " + path_);
    }
    Result<Json> json = read_json(directory + "/zarr.json");
    if (!json.ok()) return json.status();
    Result<Stored> parsed = parse_array(*json);
    if (!parsed.ok())
      return Status(WEIR_E_FORMAT, directory + ": weir does not read " + parsed.status().message());
    parsed->directory = directory;
    found = arrays_.emplace(variable, std::move(*parsed)).first;
  }
  return &found->second;
}

Result<Found> ZarrReader::find(const std::string& variable) {
  Result<const Stored*> array = stored(variable);
  if (!array.ok()) return array.status();
  return (*array)->found;
}

Status ZarrReader::load(const Stored& array, int64_t record, int64_t band, int64_t chunk,
                        std::vector<char>& out) const {
  std::vector<int64_t> start = array.chunk.start_of(band, chunk);
  start.resize(array.found.lengths.size());
  if (array.found.over_time)
    start.insert(start.begin(), record / array.chunk_shape[0] * array.chunk_shape[0]);
  int64_t place = 0, places = 1, elements = 1;
  std::string path = array.directory + "/c";
  for (size_t d = 0; d < start.size(); d++) {
    path += array.separator + std::to_string(start[d] / array.file_shape[d]);
    const int64_t along = array.file_shape[d] / array.chunk_shape[d];
    place = place * along + start[d] % array.file_shape[d] / array.chunk_shape[d];
    places *= along;
    elements *= array.chunk_shape[d];
  }
  out.resize(static_cast<size_t>(elements) * array.fill.size());
  Place where{0, -1};
  PosixFile file;
  if (::access(path.c_str(), F_OK) == 0) {
    Result<PosixFile> opened = PosixFile::open(path, O_RDONLY);
    if (!opened.ok()) return opened.status();
    file = std::move(*opened);
    Result<int64_t> size = file.size();
    if (!size.ok()) return size.status();
    Result<Place> found =
        array.sharded ? find_in_shard(file, place, places) : Result<Place>(Place{0, *size});
    if (!found.ok()) return found.status();
    where = *found;
  }
  if (where.bytes < 0) {
    for (size_t i = 0; i < out.size(); i += array.fill.size())
      std::copy(array.fill.begin(), array.fill.end(), out.begin() + static_cast<long>(i));
    return {};
  }
  std::vector<char> bytes(static_cast<size_t>(where.bytes));
  WEIR_TRY(file.read_at(bytes.data(), bytes.size(), where.offset));
  const Status decoded = decode(array.codec, bytes, out);
  return decoded.ok() ? decoded : Status(decoded.code(), path + ": " + decoded.message());
}

Status ZarrReader::read(const std::string& variable, int64_t record, int64_t first, int64_t count,
                        void* to) {
  Result<const Stored*> found = stored(variable);
  if (!found.ok()) return found.status();
  const Stored& a = **found;
  if (record < 0 || record >= a.found.records || first < 0 || count < 0 ||
      first + count > a.found.elements()) {
    return {WEIR_E_ARGUMENT, a.directory + ": no such record or elements"};
  }
  const size_t size = a.fill.size();
  std::vector<char> whole(static_cast<size_t>(a.chunk.band_elements()) * size), chunk;
  char* out = static_cast<char*>(to);
  while (count > 0) {
    const int64_t band = a.chunk.band_of(first), begin = a.chunk.first_of(band);
    for (int64_t c = 0; c < a.chunk.chunks_per_band(); c++) {
      WEIR_TRY(load(a, record, band, c, chunk));
      const int64_t in_time = a.found.over_time ? record % a.chunk_shape[0] : 0;
      a.chunk.paste(band, c,
                    chunk.data() + static_cast<size_t>(in_time * a.chunk.chunk_elements()) * size,
                    size, whole.data());
    }
    const int64_t n = std::min(count, begin + a.chunk.count_of(band) - first);
    std::memcpy(out, whole.data() + static_cast<size_t>(first - begin) * size,
                static_cast<size_t>(n) * size);
    out += static_cast<size_t>(n) * size;
    first += n;
    count -= n;
  }
  return {};
}

}  // namespace weir::output::zarr
