// SPDX-License-Identifier: Apache-2.0
#include "output/format/netcdf/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "output/format/written.h"

namespace weir::output::netcdf {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

const Extents kExtents = {{0, {'S', 'U', 'P'}}, {6, {'x', 'y'}}, {9, {'!'}}};

TEST(journal, a_commit_that_was_cut_short_is_completed) {
  Scratch scratch;
  const std::string path = scratch / "f";
  std::ofstream(path) << "..........";
  {
    Journal journal(path);
    ASSERT_EQ(journal.write(kExtents, true), 0);
    journal.remove();  // not while it is valid
  }
  EXPECT_EQ(Journal(path).replay(), 0);
  EXPECT_EQ(text_of(path), "SUP...xy.!");
  EXPECT_FALSE(std::filesystem::exists(path + ".journal"));
  EXPECT_EQ(Journal(path).replay(), 0);
}

TEST(journal, an_applied_or_torn_one_changes_nothing) {
  Scratch scratch;
  const std::string path = scratch / "f";
  std::ofstream(path) << "..........";
  Journal journal(path);
  ASSERT_EQ(journal.write(kExtents, false), 0);
  const std::string whole = text_of(path + ".journal");
  ASSERT_EQ(journal.clear(), 0);
  EXPECT_EQ(Journal(path).replay(), 0);
  EXPECT_EQ(text_of(path), "..........");
  for (size_t cut = 0; cut < whole.size(); cut++) {
    std::ofstream(path + ".journal", std::ios::binary | std::ios::trunc) << whole.substr(0, cut);
    ASSERT_EQ(Journal(path).replay(), 0);
    ASSERT_EQ(text_of(path), "..........") << cut;
    std::string damaged = whole;
    damaged[cut] = static_cast<char>(damaged[cut] ^ 0x10);
    std::ofstream(path + ".journal", std::ios::binary | std::ios::trunc) << damaged;
    ASSERT_EQ(Journal(path).replay(), 0);
    ASSERT_EQ(text_of(path), "..........") << cut;
  }
}

}  // namespace
}  // namespace weir::output::netcdf
