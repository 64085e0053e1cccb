// SPDX-License-Identifier: Apache-2.0
#include "output/engine/memory.h"

#include <algorithm>

#include "output/reduce/accumulator.h"

namespace weir::output {

namespace {

constexpr int64_t kSlab = 4 << 20;
constexpr int kSlabsInBudget = 8;

}  // namespace

SlabLimits slab_limits(const Settings& settings) {
  const int64_t most = std::max<int64_t>(settings.server_memory_bytes / kSlabsInBudget, 4096);
  return {std::min(most, kSlab), most, settings.encode_threads};
}

int64_t staging_bytes(const Setup& setup, const Section& section, const Part& slab) {
  const Column& c = section.columns[static_cast<size_t>(slab.column)];
  int64_t bytes = 0;
  for (const ClientView& view : setup.clients) {
    if (view.route == Route::kShared) continue;
    each_strip(c.shape, slab, [&](const Strip& strip) {
      const auto [lo, hi] =
          view.pieces[static_cast<size_t>(c.decomposition)].bounds(strip.first, strip.last);
      bytes += strip.levels * (hi - lo) * static_cast<int64_t>(size_of(c.type));
    });
  }
  return bytes;
}

BufferSizes buffer_sizes(const Setup& setup) {
  BufferSizes sizes;
  const int of_group = setup.topology.owners[static_cast<size_t>(setup.group)];
  for (const StreamLayout& stream : setup.layout.streams) {
    const int owners = stream.owners(of_group);
    if (setup.owner >= owners) continue;
    for (const Section* section : {&stream.lonlat, &stream.fields}) {
      for (const Part& slab : section->of(owners, setup.owner)) {
        const Column& c = section->columns[static_cast<size_t>(slab.column)];
        // Results of sums pass through the buffer as double.
        const int64_t element = c.operation == WEIR_INSTANT ? c.shape.element_bytes : 8;
        sizes.slab = std::max(sizes.slab, slab.count * element);
        sizes.staging = std::max(sizes.staging, staging_bytes(setup, *section, slab));
        sizes.accumulators +=
            Accumulator::memory_bytes(c.operation, c.type, c.missing.has_value(), slab.count);
      }
    }
  }
  return sizes;
}

Status check_memory(Setup* setup) {
  const BufferSizes sizes = buffer_sizes(*setup);
  const int64_t buffers = (sizes.accumulators > 0 ? 3 : 2) * sizes.slab + 2 * sizes.staging;
  setup->memory_bytes += buffers + sizes.accumulators;
  if (setup->memory_bytes <= setup->settings.server_memory_bytes) return {};
  return {WEIR_E_MEMORY, "a rank that writes needs " + std::to_string(setup->memory_bytes) +
                             " bytes (accumulators " + std::to_string(sizes.accumulators) +
                             ", buffers " + std::to_string(buffers) +
                             ", the rest plans), and server_memory allows " +
                             std::to_string(setup->settings.server_memory_bytes) +
                             "; raise it, use more servers, or smaller chunks"};
}

}  // namespace weir::output
