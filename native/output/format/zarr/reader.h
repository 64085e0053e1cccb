// SPDX-License-Identifier: Apache-2.0
// Reading of Zarr v3 stores: arrays of numbers on a regular grid, with or without sharding,
// little-endian, plain, zstd or gzip.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>

#include "output/format/chunks/layout.h"
#include "output/format/reader.h"

namespace weir::output::zarr {

enum class Codec { kNone, kZstd, kGzip };

// An array as its metadata describe it.
struct Stored {
  Found found;
  chunks::Layout chunk{{}, {}};      // of a record: the inner chunks of shards
  std::vector<int64_t> file_shape;   // of a chunk's file (a shard, or the chunk itself), time first
                                     // where the array has it
  std::vector<int64_t> chunk_shape;  // of a chunk, likewise
  bool sharded = false;
  Codec codec = Codec::kNone;
  std::vector<char> fill;            // one element
  std::string directory, separator;
};

class ZarrReader : public Reader {
 public:
  static Result<std::unique_ptr<Reader>> open(const std::string& path);
  using Reader::find;
  Result<Found> find(const std::string& variable) override;
  Status read(const std::string& variable, int64_t record, int64_t first, int64_t count,
              void* to) override;

 private:
  explicit ZarrReader(std::string path) : path_(std::move(path)) {}
  Result<const Stored*> stored(const std::string& variable);
  // A chunk's elements, decoded; its fill value when there is no such chunk.
  Status load(const Stored& array, int64_t record, int64_t band, int64_t chunk,
              std::vector<char>& out) const;

  std::string path_;
  std::map<std::string, Stored> arrays_;
};

// What an array's zarr.json says, or why weir cannot read it.
Result<Stored> parse_array(const nlohmann::json& json);

}  // namespace weir::output::zarr
