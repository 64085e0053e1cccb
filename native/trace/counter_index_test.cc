// SPDX-License-Identifier: Apache-2.0
#include "trace/counter_index.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

namespace weir::trace {
namespace {

TEST(CounterIndex, an_unknown_key_has_no_entry) {
  CounterIndex* index = grow_index(nullptr);
  ASSERT_NE(index, nullptr);
  EXPECT_EQ(find_entry(index, 77), nullptr);
  forget_index(index);
}

TEST(CounterIndex, what_was_outgrown_is_readable_until_it_is_forgotten) {
  std::deque<uint64_t> entries;
  CounterIndex* const first = grow_index(nullptr);
  CounterIndex* index = first;
  for (uint64_t key = 1; index == first; ++key) {
    insert(index, &entries.emplace_back(key));
    index = grow_index(index);
    ASSERT_NE(index, nullptr);
  }
  for (CounterIndex* one : {first, index}) {
    for (uint64_t& entry : entries) EXPECT_EQ(find_entry(one, entry), &entry);
  }
  EXPECT_EQ(index->older, first);
  forget_older(index);
  EXPECT_EQ(index->older, nullptr);
  for (uint64_t& entry : entries) EXPECT_EQ(find_entry(index, entry), &entry);
  forget_index(index);
}

TEST(CounterIndex, keeps_what_a_map_keeps_through_all_its_growth) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::map<uint64_t, uint64_t*> oracle;
  std::deque<uint64_t> entries;
  CounterIndex* index = nullptr;
  for (uint64_t n = 1; n <= 100000; ++n) {
    // Keys as the log makes them: few values in each of their parts, so close to one another.
    const uint64_t key = (random() % 30000 + 1) | (random() % 8) << 32 | (random() % 4) << 48;
    index = grow_index(index);
    ASSERT_NE(index, nullptr);
    const auto known = oracle.find(key);
    if (known != oracle.end()) {
      ASSERT_EQ(find_entry(index, key), known->second);
      continue;
    }
    ASSERT_EQ(find_entry(index, key), nullptr);
    entries.push_back(key);
    insert(index, &entries.back());
    oracle[key] = &entries.back();
    if (n % 1000 == 0) forget_older(index);
  }
  EXPECT_EQ(index->filled, oracle.size());
  for (const auto& [key, entry] : oracle) EXPECT_EQ(find_entry(index, key), entry);
  forget_index(index);
}

}  // namespace
}  // namespace weir::trace
