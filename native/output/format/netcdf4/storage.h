// SPDX-License-Identifier: Apache-2.0
// How the variables of a description are stored in a netCDF-4 file: the same on all owners, without
// a look into the file.
#pragma once

#include <vector>

#include "output/format/chunks/layout.h"
#include "output/format/format.h"
#include "output/format/netcdf/module.h"

namespace weir::output::netcdf4 {

enum class How {
  kCreated,   // a coordinate, written with the header
  kFixed,     // no time: contiguous
  kSeries,    // a few bytes a record (time): chunks of many records
  kInPlace,   // chunks, not compressed: their places are known before the data are
  kPacked,    // compressed chunks
};

struct Stored {
  How how;
  Type type;
  Compression compression;
  chunks::Layout layout;  // kInPlace, kPacked; of the others the whole record

  int64_t element_bytes() const { return static_cast<int64_t>(size_of(type)); }
  int64_t chunk_bytes() const { return layout.chunk_elements() * element_bytes(); }
  int64_t chunks() const { return layout.bands() * layout.chunks_per_band(); }
};

// Records in a chunk of kSeries.
constexpr int64_t kSeriesRecords = 512;

Stored stored(const FileDescription& description, const Variable& variable);
std::vector<Stored> storage_of(const FileDescription& description);
// The description with the chunks as the module wants them: all dimensions, time first.
FileDescription with_chunks(const FileDescription& description, const std::vector<Stored>& storage);

// Pieces that need a place before record `record` is written: all chunks of kInPlace, one each of
// kSeries; with `fixed` the fixed variables as well. Always in the same order.
std::vector<netcdf::Piece> pieces_of_record(const std::vector<Stored>& storage, int64_t record,
                                            bool fixed);
netcdf::Piece piece_of_chunk(const std::vector<Stored>& storage, int variable, int64_t record,
                             int64_t band, int64_t chunk, int64_t bytes);

}  // namespace weir::output::netcdf4
