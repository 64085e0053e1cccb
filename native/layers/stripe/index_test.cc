// SPDX-License-Identifier: Apache-2.0
#include "layers/stripe/index.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::layers::stripe {
namespace {

std::string as_string(base::Text text) { return {text.data, text.size}; }

TEST(Index, composed_and_parsed_is_the_same) {
  char text[kIndexBytes];
  Index made, read;
  ASSERT_TRUE(compose(base::text("/a,/b/c"), 65536, base::text("/scratch/out.nc"), 0, text,
                      sizeof text, &made));
  ASSERT_TRUE(parse(base::text(text), &read));
  EXPECT_EQ(read.unit, 65536u);
  ASSERT_EQ(read.pieces, 2u);
  EXPECT_EQ(as_string(read.path[0]).rfind("/a/out.nc.", 0), 0u);
  EXPECT_EQ(as_string(read.path[1]).rfind("/b/c/out.nc.", 0), 0u);
}

TEST(Index, files_of_one_name_in_two_directories_have_pieces_of_their_own) {
  char one[kIndexBytes], other[kIndexBytes];
  Index first, second;
  ASSERT_TRUE(compose(base::text("/a,/b"), 1, base::text("/x/out"), 0, one, sizeof one, &first));
  ASSERT_TRUE(
      compose(base::text("/a,/b"), 1, base::text("/y/out"), 0, other, sizeof other, &second));
  EXPECT_NE(as_string(first.path[0]), as_string(second.path[0]));
  ASSERT_TRUE(
      compose(base::text("/a,/b"), 1, base::text("/x/out"), 77, other, sizeof other, &second));
  EXPECT_NE(as_string(first.path[0]),
            as_string(second.path[0]));  // made anew while the old one lives on under another name
}

TEST(Index, anything_else_is_none) {
  Index read;
  for (const char* text :
       {"", "CDF\1", "weir stripe 1\n", "weir stripe 1\nunit_bytes 0\npiece /a\npiece /b\n",
        "weir stripe 1\nunit_bytes 5\npiece /a\n",
        "weir stripe 1\nunit_bytes 5\nelse\npiece /a\npiece /b\n"}) {
    EXPECT_FALSE(parse(base::text(text), &read)) << text;
  }
}

TEST(Index, is_read_on_when_it_ends_within_a_line) {
  for (const char* text : {"", "w", "weir stripe", "weir stripe 1\nunit_bytes 5\npiece /a\npie"}) {
    EXPECT_TRUE(is_cut(base::text(text))) << text;
  }
  for (const char* text : {"C", "weir stripe 2", "weir strip\n", "weir stripe 1\nunit_bytes 5\n"}) {
    EXPECT_FALSE(is_cut(base::text(text))) << text;
  }
}

// Against writing byte by byte.
TEST(Places, pieces_hold_what_they_should) {
  for (const uint64_t unit : {1, 3, 8}) {
    for (const uint32_t pieces : {2u, 3u, 5u}) {
      std::vector<uint64_t> length(pieces);
      for (uint64_t size = 0; size < 100; ++size) {
        for (uint32_t i = 0; i < pieces; ++i)
          EXPECT_EQ(piece_bytes(size, unit, pieces, i), length[i]) << size;
        uint64_t most = 0;
        for (uint32_t i = 0; i < pieces; ++i)
          most = std::max(most, file_bytes(length[i], unit, pieces, i));
        EXPECT_EQ(most, size);
        const Place at = place_of(size, unit, pieces);
        EXPECT_EQ(at.offset, length[at.piece]++);
        EXPECT_EQ(at.run, unit - size % unit);
      }
    }
  }
}

}  // namespace
}  // namespace weir::layers::stripe
