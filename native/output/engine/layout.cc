// SPDX-License-Identifier: Apache-2.0
#include "output/engine/layout.h"

#include <algorithm>
#include <set>

namespace weir::output {

namespace {

constexpr int64_t kAlignment = 64;

Column column_of_field(const Catalogue& catalogue, const StreamField& member,
                       const StreamFile& file, int place) {
  const Field& f = catalogue.fields[static_cast<size_t>(member.field)];
  Column c;
  c.field = member.field;
  c.decomposition = f.decomposition;
  c.variable = file.fields[static_cast<size_t>(place)];
  c.type = f.type;
  c.file_type = file.file.variables[static_cast<size_t>(c.variable)].type;
  c.operation = member.operation;
  c.missing = f.missing;
  c.packing = packing_of(f.attributes);
  c.shape.levels = catalogue.levels_of(f);
  c.shape.points = catalogue.grid_of(f).points();
  return c;
}

void finish(Section& section, const FormatFacts& facts, const std::set<int>& owner_counts,
            const SlabLimits& limits) {
  int64_t granule_bytes = 0;
  for (Column& c : section.columns) {
    c.shape.element_bytes = static_cast<int64_t>(std::max(size_of(c.type), size_of(c.file_type)));
    c.shape.granule = std::max<int64_t>(facts.granules[static_cast<size_t>(c.variable)], 1);
    section.shapes.push_back(c.shape);
    granule_bytes = std::max(granule_bytes, c.shape.granule * c.shape.element_bytes);
  }
  const int64_t slab_bytes =
      facts.threads && limits.threads > 1
          ? std::max(limits.bytes, std::min(limits.threads * granule_bytes, limits.most_bytes))
          : limits.bytes;
  for (int owners : owner_counts) {
    if (static_cast<size_t>(owners) > section.slabs.size())
      section.slabs.resize(static_cast<size_t>(owners));
    for (const std::vector<Part>& parts : share(section.shapes, owners)) {
      section.slabs[static_cast<size_t>(owners - 1)].push_back(
          slabs(section.shapes, parts, slab_bytes));
    }
  }
}

}  // namespace

Result<Layout> make_layout(const Catalogue& catalogue, std::vector<StreamFile> files,
                           std::vector<FormatFacts> facts, const Topology& topology,
                           const SlabLimits& limits) {
  Layout layout;
  for (size_t s = 0; s < catalogue.streams.size(); ++s) {
    StreamLayout stream;
    stream.file = std::move(files[s]);
    stream.facts = std::move(facts[s]);
    if (stream.facts.granules.size() != stream.file.file.variables.size()) {
      return Status{WEIR_E_INTERNAL, "stream '" + catalogue.streams[s].name +
                                         "': servers and clients differ in its variables"};
    }
    for (const LonLat& pair : stream.file.lonlat) {
      for (int variable : {pair.lon, pair.lat}) {
        Column c;
        c.decomposition = pair.decomposition;
        c.variable = variable;
        c.file_type = stream.file.file.variables[static_cast<size_t>(variable)].type;
        c.shape.points = catalogue.grids[static_cast<size_t>(pair.grid)].points();
        stream.lonlat.columns.push_back(c);
      }
    }
    const std::vector<StreamField>& fields = catalogue.streams[s].fields;
    for (size_t i = 0; i < fields.size(); ++i) {
      stream.fields.columns.push_back(
          column_of_field(catalogue, fields[i], stream.file, static_cast<int>(i)));
    }
    std::set<int> owner_counts;
    for (int of_group : topology.owners) owner_counts.insert(stream.owners(of_group));
    finish(stream.lonlat, stream.facts, owner_counts, limits);
    finish(stream.fields, stream.facts, owner_counts, limits);
    layout.streams.push_back(std::move(stream));
  }
  return layout;
}

ClientLayout make_client_layout(const Layout& layout, const std::vector<int64_t>& points) {
  ClientLayout made;
  const auto place = [&](const Column& c, int64_t& at) {
    const int64_t here = at;
    const int64_t bytes = c.shape.levels * points[static_cast<size_t>(c.decomposition)] *
                          static_cast<int64_t>(size_of(c.type));
    at += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return here;
  };
  for (const StreamLayout& stream : layout.streams) {
    ClientStream s;
    for (const Column& c : stream.lonlat.columns) s.lonlat.push_back(place(c, made.bytes));
    for (const Column& c : stream.fields.columns) s.fields.push_back(place(c, s.slot_bytes));
    s.stamp = s.slot_bytes;
    s.slot_bytes += kAlignment;
    s.slot0 = made.bytes;
    made.bytes += s.slot_bytes * layout.slots;
    made.streams.push_back(std::move(s));
  }
  return made;
}

}  // namespace weir::output
