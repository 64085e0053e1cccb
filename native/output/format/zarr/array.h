// SPDX-License-Identifier: Apache-2.0
// How a variable is an array of a Zarr v3 store, and the metadata that say so (zarr-specs, core 3.0
// and the codec sharding-indexed 1.0).
#pragma once

#include <string>
#include <vector>

#include "output/format/chunks/layout.h"
#include "output/format/format.h"

namespace weir::output::zarr {

enum class How {
  kWhole,    // a coordinate: one chunk, written at creation
  kSeries,   // a few bytes a record (time): chunks of many records, written in place
  kSharded,  // shards of whole chunks; over time each record has its own
};

// Records in a chunk of kSeries.
constexpr int64_t kSeriesRecords = 512;

struct Array {
  How how;
  Type type;
  Compression compression;
  bool over_time;
  chunks::Layout chunk;               // of a record
  chunks::Layout shard;               // whole chunks; a shard is contiguous in the record's order
  std::vector<int64_t> shard_shape;   // as in the metadata: multiples of chunks, without time

  int64_t element_bytes() const { return static_cast<int64_t>(size_of(type)); }
  int64_t chunk_bytes() const { return chunk.chunk_elements() * element_bytes(); }
  // Places in a shard's index, and a chunk's among them by its start.
  int64_t chunks_in_shard() const;
  int64_t place_in_shard(const std::vector<int64_t>& start) const;
  // How many chunks of the shard are within the array.
  int64_t chunks_present(int64_t shard) const;
  // File name of the shard (or chunk) at these grid coordinates, time first where the array has it.
  static std::string key(const std::vector<int64_t>& grid);
  std::string shard_key(int64_t record, int64_t shard) const;
};

Array array_of(const FileDescription& description, const Variable& variable);
std::string array_json(const FileDescription& description, const Variable& variable,
                       const Array& array, int64_t records);
// The same as stores of earlier versions have it: float32's missing value as the program gave it,
// 1e+20.
std::string with_short_missing(std::string array_json, const Variable& variable);
// The group, with the metadata of all its arrays inside (consolidated), so that a reader opens one
// file and sees one state.
std::string group_json(const FileDescription& description, const std::vector<Array>& arrays,
                       int64_t records);

}  // namespace weir::output::zarr
