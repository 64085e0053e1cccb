// SPDX-License-Identifier: Apache-2.0
#include "output/model/codec.h"

#include <gtest/gtest.h>

#include <cstring>

#include "output/model/sample.h"

namespace weir::output {
namespace {

constexpr uint64_t kSeed = 20261122;

TEST(codec, any_catalogue_comes_back_as_it_was) {
  for (uint64_t seed = kSeed; seed < kSeed + 300; seed++) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Catalogue before = RandomCatalogue(seed).make();
    const std::vector<char> bytes = encode_catalogue(before);
    Result<Catalogue> after = decode_catalogue(bytes);
    ASSERT_TRUE(after.ok()) << after.status().message();
    ASSERT_EQ(encode_catalogue(*after), bytes);
    ASSERT_TRUE(compare_catalogues(before, *after, 1).ok());
  }
}

TEST(codec, what_is_in_it_is_what_was_defined) {
  Result<Catalogue> c = decode_catalogue(encode_catalogue(small_catalogue()));
  ASSERT_TRUE(c.ok()) << c.status().message();
  EXPECT_EQ(c->grids[0].y, (std::vector<double>{-45, 0, 45}));
  EXPECT_EQ(std::get<std::string>(c->axes[0].attributes[0].value), "down");
  EXPECT_EQ(std::get<double>(c->attributes[1].value), 3.0);
  EXPECT_EQ(c->fields[0].missing, -999);
  EXPECT_EQ(c->fields[0].chunk, (std::vector<int64_t>{1, 3, 4}));
  EXPECT_EQ(c->streams[0].fields[1].operation, WEIR_MEAN);
  EXPECT_EQ(c->streams[0].fields[1].compression->level, 3);
  EXPECT_EQ(c->streams[0].hints[0].second, "16");
  EXPECT_EQ(c->levels_of(c->fields[0]), 3);
}

TEST(codec, what_is_each_ranks_own_is_left_out) {
  Catalogue other = small_catalogue();
  other.decompositions[0].ni = 1;
  other.decompositions[0].halo.west = 3;
  EXPECT_TRUE(compare_catalogues(small_catalogue(), other, 1).ok());
}

TEST(codec, bytes_that_end_anywhere_are_refused) {
  const std::vector<char> bytes = encode_catalogue(small_catalogue());
  for (size_t n = 0; n < bytes.size(); n++) {
    ASSERT_FALSE(decode_catalogue(std::span(bytes).first(n)).ok())
        << "the first " << n << " of " << bytes.size() << " bytes";
  }
  std::vector<char> longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(decode_catalogue(longer).ok());
}

TEST(codec, damaged_bytes_are_refused_or_a_sound_catalogue) {
  const std::vector<char> bytes = encode_catalogue(small_catalogue());
  std::mt19937_64 random(kSeed);
  int sound = 0;
  for (int i = 0; i < 20000; i++) {
    std::vector<char> damaged = bytes;
    for (int n = static_cast<int>(random() % 4); n >= 0; n--) {
      const uint64_t value = random() % 3 == 0 ? ~uint64_t{0} >> random() % 64 : random() % 256;
      const size_t at = random() % (damaged.size() - sizeof value);
      std::memcpy(&damaged[at], &value, 1 + random() % sizeof value);
    }
    Result<Catalogue> c = decode_catalogue(damaged);
    if (!c.ok()) continue;
    sound++;
    for (const Stream& stream : c->streams) {
      for (const StreamField& member : stream.fields) {
        const Field& field = c->fields.at(member.field);
        ASSERT_GE(c->levels_of(field), 0) << "seed " << kSeed << " case " << i;
        ASSERT_LT(c->decompositions.at(field.decomposition).grid,
                  static_cast<int>(c->grids.size()));
      }
    }
  }
  EXPECT_GT(sound, 0);
  EXPECT_LT(sound, 20000);
}

TEST(compare, the_first_difference_is_named) {
  const Catalogue root = small_catalogue();
  const auto reported = [&](auto change) {
    Catalogue mine = small_catalogue();
    change(mine);
    return compare_catalogues(root, mine, 7).message();
  };
  EXPECT_NE(reported([](Catalogue& c) {
              c.fields[1].attributes[0].value = "degC";
            }).find("field 'ps', attribute 'units', value is 'K' on rank 0 and 'degC' on rank 7"),
            std::string::npos);
  EXPECT_NE(reported([](Catalogue& c) { c.fields.pop_back(); }).find("rank 0 has field 'ps', name"),
            std::string::npos);
  EXPECT_NE(reported([](Catalogue& c) {
              c.axes[0].values[1] = 851;
            }).find("axis 'level', values[1] is 850 on rank 0 and 851 on rank 7"),
            std::string::npos);
  EXPECT_NE(reported([](Catalogue& c) {
              c.streams[0].rotation = 2;
            }).find("stream 'history', rotation is 1 on rank 0 and 2 on rank 7"),
            std::string::npos);
  EXPECT_NE(reported([](Catalogue& c) {
              std::swap(c.fields[0], c.fields[1]);
            }).find("rank 0 has field 't', name ('t') where field 'ps', name ('ps') is on rank 7"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::output
