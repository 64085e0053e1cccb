// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace weir::base {
namespace {

TEST(Writer, cuts_what_does_not_fit_and_says_so) {
  char buffer[8];
  memset(buffer, 'x', sizeof buffer);
  Writer w(buffer, 7);
  w.add("abc").add("defgh");
  EXPECT_STREQ(buffer, "abcdef");
  EXPECT_TRUE(w.cut());
  EXPECT_EQ(w.view().size, 6u);
  EXPECT_EQ(buffer[7], 'x') << "wrote behind the buffer";
}

TEST(Writer, is_not_cut_when_it_fits_exactly) {
  char buffer[4];
  Writer w(buffer, sizeof buffer);
  w.add("abc");
  EXPECT_FALSE(w.cut());
  w.add("");
  EXPECT_FALSE(w.cut());
  w.add("d");
  EXPECT_TRUE(w.cut());
}

TEST(Writer, writes_numbers_to_the_largest) {
  char buffer[64];
  Writer w(buffer, sizeof buffer);
  w.add_number(0).add(" ").add_number(10).add(" ").add_number(UINT64_MAX);
  EXPECT_STREQ(buffer, "0 10 18446744073709551615");
}

TEST(Text, of_null_is_empty) {
  EXPECT_EQ(text(nullptr).size, 0u);
}

TEST(ParseNumber, takes_whole_decimal_numbers_and_nothing_else) {
  int64_t n = 0;
  EXPECT_TRUE(parse_number(text("-42"), &n));
  EXPECT_EQ(n, -42);
  EXPECT_TRUE(parse_number(text("007"), &n));
  EXPECT_EQ(n, 7);
  for (const char* wrong : {"", "-", "+1", " 1", "1 ", "1x", "0x10", "99999999999999999999"}) {
    EXPECT_FALSE(parse_number(text(wrong), &n)) << '"' << wrong << '"';
  }
}

TEST(ParseNumber, leaves_the_result_alone_when_it_fails) {
  int64_t n = 5;
  EXPECT_FALSE(parse_number(text("12a"), &n));
  EXPECT_EQ(n, 5);
}

TEST(ParseBytes, knows_suffixes_as_powers_of_1024) {
  uint64_t n = 0;
  EXPECT_TRUE(parse_bytes(text("123"), &n));
  EXPECT_EQ(n, 123u);
  EXPECT_TRUE(parse_bytes(text("64K"), &n));
  EXPECT_EQ(n, 65536u);
  EXPECT_TRUE(parse_bytes(text("2m"), &n));
  EXPECT_EQ(n, uint64_t{2} << 20);
  EXPECT_TRUE(parse_bytes(text("4G"), &n));
  EXPECT_EQ(n, uint64_t{4} << 30);
  EXPECT_TRUE(parse_bytes(text("1T"), &n));
  EXPECT_EQ(n, uint64_t{1} << 40);
}

TEST(ParseBytes, refuses_what_is_no_size) {
  uint64_t n = 0;
  for (const char* wrong : {"", "K", "-1K", "1.5G", "1KB", "10000000T", "G1"}) {
    EXPECT_FALSE(parse_bytes(text(wrong), &n)) << '"' << wrong << '"';
  }
}

TEST(Hash, differs_for_texts_that_differ_in_one_character_or_length) {
  std::set<uint64_t> seen;
  std::string name = "/a/directory/with/files/name.00";
  for (char a = '0'; a <= '9'; ++a) {
    for (size_t length = 0; length <= name.size(); ++length) {
      name[name.size() - 1] = a;
      const std::string part = name.substr(name.size() - length);
      if (length == 0 && a != '0') continue;  // one empty text
      EXPECT_TRUE(seen.insert(hash({part.data(), part.size()}, 1)).second) << part;
    }
  }
}

TEST(Hash, depends_on_the_seed) {
  EXPECT_NE(hash(text("name"), 1), hash(text("name"), 2));
}

TEST(Hash, reads_nothing_behind_the_text) {
  const char one[] = "same|one", other[] = "same|oth";
  EXPECT_EQ(hash({one, 4}, 0), hash({other, 4}, 0));
}

}  // namespace
}  // namespace weir::base
