// SPDX-License-Identifier: Apache-2.0
// Where everything is: the columns of a stream's frames, which owner writes which slabs of them,
// and where each client keeps them in its window. Computed by every rank from the catalogue and a
// few numbers of the formats, so that only those are sent.
#pragma once

#include <optional>

#include "output/cf/describe.h"
#include "output/engine/convert.h"
#include "output/engine/topology.h"
#include "output/plan/pieces.h"
#include "output/plan/share.h"

namespace weir::output {

struct Column {
  int field = -1;  // of the catalogue; -1: lon or lat of a grid
  int decomposition = -1;
  int variable = -1;
  Type type = WEIR_FLOAT64, file_type = WEIR_FLOAT64;
  weir_operation operation = WEIR_INSTANT;
  std::optional<Number> missing;
  std::optional<Packing> packing;
  ColumnShape shape;

  // What is written where there is no value.
  Filling filling() const {
    if (!packing) return Filling::of(missing, file_type);
    return {default_fill(file_type), missing.has_value(), packing, missing};
  }
  Convert to_file(Type from, ByteOrder order) const {
    return (packing ? packer : converter)(from, file_type, order);
  }
};

// Columns that are written together, and each owner's slabs of them. Groups all have the same
// number of owners or the first group's slabs hold for those with fewer: slabs[owners - 1][owner].
struct Section {
  std::vector<Column> columns;
  std::vector<ColumnShape> shapes;
  std::vector<std::vector<std::vector<Part>>> slabs;  // [number of owners - 1][owner]

  const std::vector<Part>& of(int owners, int owner) const {
    return slabs[static_cast<size_t>(owners - 1)][static_cast<size_t>(owner)];
  }
};

// Of slabs: their size; and where several threads encode granules, a granule for each of them as
// far as `most_bytes` allow.
struct SlabLimits {
  int64_t bytes = 0, most_bytes = 0, threads = 1;
};

// What only a format knows; the first owner asks it and tells the others.
struct FormatFacts {
  ByteOrder order = ByteOrder::kNative;
  bool parallel = true, threads = false;
  std::vector<int64_t> granules;  // by variable
};

struct StreamLayout {
  StreamFile file;
  FormatFacts facts;
  Section lonlat;  // once in each file
  Section fields;  // with each frame

  // How many of a group's owners write this stream.
  int owners(int of_group) const { return facts.parallel ? of_group : 1; }
};

struct Layout {
  std::vector<StreamLayout> streams;
  int slots = 2;  // of each stream, in each window
};

Result<Layout> make_layout(const Catalogue& catalogue, std::vector<StreamFile> files,
                           std::vector<FormatFacts> facts, const Topology& topology,
                           const SlabLimits& limits);

// Where a client has a stream's data, in bytes from the beginning of its window.
struct ClientStream {
  std::vector<int64_t> lonlat;  // by column
  std::vector<int64_t> fields;  // by column, from the beginning of the slot
  int64_t slot0 = 0, slot_bytes = 0;
  int64_t stamp = 0;            // from the beginning of the slot: whose it is, see Stamp

  int64_t slot(int64_t frame, int slots) const { return slot0 + frame % slots * slot_bytes; }
};

struct ClientLayout {
  std::vector<ClientStream> streams;
  int64_t bytes = 0;
};

// points: the client's points of each decomposition.
ClientLayout make_client_layout(const Layout& layout, const std::vector<int64_t>& points);

}  // namespace weir::output
