// SPDX-License-Identifier: Apache-2.0
#include "record/counter_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace weir::record {
namespace {

wire::Counter* numbered(uint64_t n) { return reinterpret_cast<wire::Counter*>(n * sizeof(wire::Counter)); }

TEST(CounterIndex, an_unknown_key_has_an_empty_slot) {
  CounterIndex* index = grow_index(nullptr);
  ASSERT_NE(index, nullptr);
  EXPECT_EQ(find_slot(index, 77)->key, 0u);
  forget_index(index);
}

TEST(CounterIndex, keeps_what_a_map_keeps_through_all_its_growth) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::map<uint64_t, uint64_t> oracle;
  CounterIndex* index = nullptr;
  for (uint64_t n = 1; n <= 20000; ++n) {
    // Keys as the log makes them: few values in each of their parts, so close to one another.
    const uint64_t key = ((random() % 3000 + 1) << 16) | (random() % 8) << 8 | (random() % 4);
    index = grow_index(index);
    ASSERT_NE(index, nullptr);
    CounterIndex::Slot* slot = find_slot(index, key);
    const auto known = oracle.find(key);
    if (known != oracle.end()) {
      ASSERT_EQ(slot->key, key);
      ASSERT_EQ(slot->counter, numbered(known->second));
      continue;
    }
    ASSERT_EQ(slot->key, 0u);
    *slot = {key, numbered(n)};
    ++index->filled;
    oracle[key] = n;
  }
  EXPECT_EQ(index->filled, oracle.size());
  for (const auto& [key, n] : oracle) EXPECT_EQ(find_slot(index, key)->counter, numbered(n));
  forget_index(index);
}

}  // namespace
}  // namespace weir::record
