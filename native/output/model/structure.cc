// SPDX-License-Identifier: Apache-2.0
// What every user of a catalogue relies on without looking: indices lead somewhere, sizes can be
// multiplied. Whoever decodes a catalogue from bytes checks it before anything else.
#include "output/model/check.h"
#include "output/model/text.h"

namespace weir::output {
namespace {

template <typename Things>
bool leads(int index, const Things& things) {
  return index >= 0 && static_cast<size_t>(index) < things.size();
}

Status nowhere(const std::string& kind, const std::string& name, const std::string& what) {
  return {WEIR_E_ARGUMENT,
          kind + " " + quoted(name) + ": its " + what + " is none of this context's"};
}

}  // namespace

Status check_structure(const Catalogue& c) {
  for (const Grid& grid : c.grids) {
    int64_t points = 0;
    if (grid.nx < 0 || grid.ny < 0 || __builtin_mul_overflow(grid.nx, grid.ny, &points) ||
        points > (int64_t{1} << 56)) {
      return {WEIR_E_ARGUMENT, "grid " + quoted(grid.name) + ": more points than can be counted"};
    }
    if (grid.lonlat_decomposition != -1 && !leads(grid.lonlat_decomposition, c.decompositions)) {
      return nowhere("grid", grid.name, "decomposition of lon and lat");
    }
  }
  for (const Decomposition& decomposition : c.decompositions) {
    if (!leads(decomposition.grid, c.grids))
      return nowhere("decomposition", decomposition.name, "grid");
  }
  for (const Field& field : c.fields) {
    if (!leads(field.decomposition, c.decompositions))
      return nowhere("field", field.name, "decomposition");
    int64_t elements = c.grid_of(field).points();
    for (int axis : field.axes) {
      if (!leads(axis, c.axes)) return nowhere("field", field.name, "axis");
      if (__builtin_mul_overflow(elements, static_cast<int64_t>(c.axes[axis].values.size()),
                                 &elements) ||
          elements > (int64_t{1} << 59)) {
        return {WEIR_E_ARGUMENT,
                "field " + quoted(field.name) + ": more elements than can be counted"};
      }
    }
  }
  for (const Stream& stream : c.streams) {
    for (const StreamField& member : stream.fields) {
      if (!leads(member.field, c.fields)) return nowhere("stream", stream.name, "field");
    }
  }
  return {};
}

}  // namespace weir::output
