// SPDX-License-Identifier: Apache-2.0
#include "output/config/explain.h"

#include <gtest/gtest.h>

namespace weir::output {
namespace {

std::string explained(const std::string& text, int64_t ranks = 0) {
  Result<Config> config = parse_config({"o.toml", text, {{"WEIR_OUTPUT_SYNC", "true"}}});
  return config.ok() ? explain(*config, ranks) : config.status().message();
}

TEST(explain, a_whole_configuration) {
  EXPECT_EQ(explained(R"([output]
mode = "servers"
groups = 2
servers_per_group = 3
[stream.history]
path = "out/h_%Y%m%d%H.nc"
every_s = 21600
rotation = 1
[[stream.history.field]]
name = "u"
operation = "mean"
compression = "zstd:3"
chunk = [1, 50, 60]
[stream.old]
enabled = false
)",
                      38),
            R"(configuration  o.toml
environment    WEIR_OUTPUT_SYNC=true
mode           servers: 2 groups of 3 servers, one writer in each group; the model goes on while they write
servers are    the last ranks of each node
ranks          38: 32 compute, 6 ranks serve
files          go to the groups in turn, all frames of one file to the same group
server memory  at most 256 MiB of data in each server, whatever the size of a step
client memory  two frames of every stream in each rank of the model
transport      auto: shared memory on a node, else what a probe at the start shows to work
time limit     5 minutes for any wait; then an error that says for whom
to the disk    each frame is on the disk before the next is written (sync)

stream history
  every        6 hours
  files        a new one after 1 frame
  names        out/h_2026112106.nc, then out/h_2026112112.nc
  format       as the program says
  field        u: mean since the frame before, compression zstd, level 3, chunks of 1 x 50 x 60; refused unless the program's format is netcdf4 or zarr (without a word of it, it is cdf5): format says so here

stream old: switched off

Other streams are as the program says.
)");
}

TEST(explain, names_of_files_by_the_calendar) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"day", "%Y%m%d", "20261121, then 20261122"},
      {"month", "%Y%m", "202611, then 202612"},
      {"year", "%Y", "2026, then 2027"}};
  for (const auto& [period, path, names] : cases) {
    const std::string text =
        explained(std::string("[stream.h]\nevery_s = 3600\nexisting = \"append\"\nrotation = \"") +
                  period + "\"\npath = \"" + path + "\"\n");
    EXPECT_NE(text.find(std::string("names        ") + names + "\n"), std::string::npos) << text;
    EXPECT_NE(text.find("existing     this run's frames follow"), std::string::npos) << text;
  }
}

TEST(explain, nothing_configured) {
  const std::string text = explain(*parse_config({}), 4);
  EXPECT_NE(text.find("mode           serial: the first rank"), std::string::npos) << text;
  EXPECT_NE(text.find("ranks          4: all compute"), std::string::npos) << text;
  EXPECT_NE(text.find("streams        all as the program says"), std::string::npos) << text;
}

TEST(explain, more_servers_than_ranks) {
  Settings settings;
  settings.mode = Mode::kServers;
  settings.groups = 2;
  settings.servers_per_group = 2;
  EXPECT_TRUE(check_ranks(settings, 5).ok());
  EXPECT_TRUE(check_ranks(settings, 0).ok());
  EXPECT_EQ(check_ranks(settings, 4).message(),
            "2 groups of 2 servers are 4 servers, but the job has only 4 ranks; at least one must "
            "compute");
}

}  // namespace
}  // namespace weir::output
