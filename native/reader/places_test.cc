// SPDX-License-Identifier: Apache-2.0
#include "reader/places.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <vector>

namespace {

using weir::reader::hash_of;
using weir::reader::PlaceTable;

TEST(Places, each_key_has_one_place_after_growth) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937_64 random(seed);
  std::vector<std::pair<uint64_t, uint64_t>> keys;
  std::vector<uint32_t> counts;
  PlaceTable places;
  constexpr uint32_t kAdded = 20000, kFirst = 97, kSecond = 41;
  for (uint32_t i = 0; i < kAdded; ++i) {
    const std::pair<uint64_t, uint64_t> key = {random() % kFirst, random() % kSecond << 32};
    const auto next = uint32_t(keys.size());
    const uint32_t place = places.find_or_add(hash_of(key.first, key.second), next,
                                              [&](uint32_t at) { return keys[at] == key; });
    ASSERT_LE(place, next);
    if (place == next) {
      keys.push_back(key);
      counts.push_back(0);
    }
    ASSERT_EQ(keys[place], key);
    ++counts[place];
  }
  EXPECT_LE(keys.size(), kFirst * kSecond);
  uint32_t sum = 0;
  for (const uint32_t count : counts) sum += count;
  EXPECT_EQ(sum, kAdded);
}

TEST(Places, keys_of_one_hash_stay_apart) {
  PlaceTable places;
  for (uint32_t next : {0u, 1u, 2u}) {
    const auto is_none = [](uint32_t) { return false; };
    EXPECT_EQ(places.find_or_add(7, next, is_none), next);
  }
  const auto is_last = [](uint32_t place) { return place == 2; };
  EXPECT_EQ(places.find_or_add(7, 3, is_last), 2u);
  places.clear();
  EXPECT_EQ(places.find_or_add(7, 3, is_last), 3u);
}

}  // namespace
