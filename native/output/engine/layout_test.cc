// SPDX-License-Identifier: Apache-2.0
#include "output/engine/layout.h"

#include <gtest/gtest.h>

#include "output/engine/memory.h"
#include "output/model/sample.h"

namespace weir::output {
namespace {

constexpr int64_t kPoints = 1440 * 721, kLevels = 20;  // float32 levels of 4.2 MB

// Elements of the slabs of the field of one owner, in levels.
std::vector<int64_t> levels_of_slabs(bool format_has_threads, int64_t threads, int64_t memory) {
  Catalogue c = small_catalogue();
  c.grids[0].nx = 1440;
  c.grids[0].ny = 721;
  c.axes[0].values.resize(kLevels);
  c.fields[0].chunk = {};
  c.streams[0].fields.resize(1);
  Result<StreamFile> file = describe(c, c.streams[0]);
  EXPECT_TRUE(file.ok()) << file.status().message();
  FormatFacts facts;
  facts.threads = format_has_threads;
  facts.granules.assign(file->file.variables.size(), kPoints);
  Topology topology;
  topology.groups = {{0}};
  topology.owners = {1};
  Settings settings;
  settings.encode_threads = threads;
  settings.server_memory_bytes = memory;
  Result<Layout> layout =
      make_layout(c, {std::move(*file)}, {facts}, topology, slab_limits(settings));
  EXPECT_TRUE(layout.ok());
  std::vector<int64_t> levels;
  for (const Part& slab : layout->streams[0].fields.of(1, 0))
    levels.push_back(slab.count / kPoints);
  return levels;
}

using Counts = std::vector<int64_t>;

TEST(Slabs, hold_a_level_for_each_thread_that_encodes) {
  EXPECT_EQ(levels_of_slabs(true, 8, int64_t{1} << 30), (Counts{8, 8, 4}));
}

TEST(Slabs, stay_small_where_nothing_encodes_in_threads) {
  EXPECT_EQ(levels_of_slabs(true, 1, int64_t{1} << 30), Counts(kLevels, 1));
  EXPECT_EQ(levels_of_slabs(false, 8, int64_t{1} << 30), Counts(kLevels, 1));
}

TEST(Slabs, have_an_eighth_of_the_memory_at_most) {
  EXPECT_EQ(levels_of_slabs(true, 8, int64_t{128} << 20), Counts(5, 4));
}

}  // namespace
}  // namespace weir::output
