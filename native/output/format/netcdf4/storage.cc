// SPDX-License-Identifier: Apache-2.0
#include "output/format/netcdf4/storage.h"

#include <algorithm>

namespace weir::output::netcdf4 {
namespace {

// A record of so few bytes shares its chunk with other records.
constexpr int64_t kSeriesBytes = 64;

}  // namespace

Stored stored(const FileDescription& d, const Variable& v) {
  std::vector<int64_t> lengths, chunk;
  for (int dimension : v.dimensions)
    lengths.push_back(d.dimensions[static_cast<size_t>(dimension)].size);
  const int64_t size = static_cast<int64_t>(size_of(v.type));
  if (!v.over_time)
    return {v.values.empty() ? How::kFixed : How::kCreated,
            v.type,
            {},
            chunks::Layout(lengths, lengths)};
  const bool packed = v.compression.kind != Compression::Kind::kNone;
  if (d.elements(v) * size <= kSeriesBytes && !packed)
    return {How::kSeries, v.type, {}, chunks::Layout(lengths, lengths)};
  chunk = v.chunk.size() == lengths.size() ? v.chunk : chunks::usual_chunk(lengths, size);
  for (size_t i = 0; i < chunk.size(); i++) chunk[i] = std::clamp<int64_t>(chunk[i], 1, lengths[i]);
  return {packed ? How::kPacked : How::kInPlace, v.type, v.compression,
          chunks::Layout(lengths, chunk)};
}

std::vector<Stored> storage_of(const FileDescription& description) {
  std::vector<Stored> storage;
  for (const Variable& v : description.variables) storage.push_back(stored(description, v));
  return storage;
}

FileDescription with_chunks(const FileDescription& description,
                            const std::vector<Stored>& storage) {
  FileDescription d = description;
  for (size_t i = 0; i < d.variables.size(); i++) {
    Variable& v = d.variables[i];
    v.chunk.clear();
    v.compression = storage[i].compression;
    if (!v.over_time) continue;
    v.chunk.push_back(storage[i].how == How::kSeries ? kSeriesRecords : 1);
    if (!v.dimensions.empty())
      v.chunk.insert(v.chunk.end(), storage[i].layout.chunk().begin(),
                     storage[i].layout.chunk().end());
  }
  return d;
}

netcdf::Piece piece_of_chunk(const std::vector<Stored>& storage, int variable, int64_t record,
                             int64_t band, int64_t chunk, int64_t bytes) {
  netcdf::Piece piece = {variable, {}, bytes, 0};
  const std::vector<int64_t> start =
      storage[static_cast<size_t>(variable)].layout.start_of(band, chunk);
  piece.start[0] = record;
  for (size_t d = 0; d < start.size() && d < 7; d++) piece.start[d + 1] = start[d];
  return piece;
}

std::vector<netcdf::Piece> pieces_of_record(const std::vector<Stored>& storage, int64_t record,
                                            bool fixed) {
  std::vector<netcdf::Piece> pieces;
  for (int v = 0; v < static_cast<int>(storage.size()); v++) {
    const Stored& s = storage[static_cast<size_t>(v)];
    if (s.how == How::kFixed && fixed) {
      pieces.push_back({v, {}, s.chunk_bytes(), 0});
    } else if (s.how == How::kSeries) {
      pieces.push_back(
          {v, {record / kSeriesRecords * kSeriesRecords}, s.chunk_bytes() * kSeriesRecords, 0});
    } else if (s.how == How::kInPlace) {
      for (int64_t band = 0; band < s.layout.bands(); band++) {
        for (int64_t c = 0; c < s.layout.chunks_per_band(); c++)
          pieces.push_back(piece_of_chunk(storage, v, record, band, c, s.chunk_bytes()));
      }
    }
  }
  return pieces;
}

}  // namespace weir::output::netcdf4
