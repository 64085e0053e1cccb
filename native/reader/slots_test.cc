// SPDX-License-Identifier: Apache-2.0
#include "reader/slots.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <random>

#include "reader/record.h"

namespace {

namespace key = weir::reader::key;
using weir::reader::SlotTable;

TEST(Slots, a_key_of_a_record_is_the_key_of_its_fields) {
  const uint64_t word1 = uint64_t{77} << 32 | 1000;  // file 77, duration 1000
  const uint64_t word3 = uint64_t{5} << 56 | uint64_t{8 | 1} << 48 | 2ull << 40 | 84ull << 32 |
                         4096;  // errno, flags, layer, op, size
  const uint64_t made = key::of(word1, word3);
  EXPECT_EQ(made, key::of(uint32_t{77}, 84, 2, 8 | 1));
  EXPECT_EQ(key::file(made), 77u);
  EXPECT_EQ(key::op(made), 84);
  EXPECT_EQ(key::layer(made), 2);
  EXPECT_EQ(key::flags(made), 8) << "only BELOW and NESTED are part of the key";
}

TEST(Slots, what_was_added_is_found_after_growth) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937_64 random(seed);
  SlotTable table;
  std::map<uint64_t, uint64_t> expected;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t wanted =
        key::of(uint32_t(random() % 500), uint8_t(1 + random() % 40), uint8_t(1 + random() % 3), 0);
    auto* slot = &table.at(wanted);
    if (slot->key == 0) slot = &table.insert(wanted);
    slot->calls += 1;
    expected[wanted] += 1;
  }
  EXPECT_EQ(table.used(), expected.size());
  for (const auto& [wanted, calls] : expected) ASSERT_EQ(table.at(wanted).calls, calls);
}

TEST(Record, fields_lie_where_the_format_says) {
  // The example of docs/formats/trace.md: 4096 bytes written at offset 8192 of file 5 in 1000 ticks
  // from tick 65536.
  const unsigned char bytes[32] = {0, 0, 1, 0, 0, 0, 0, 0, 0xe8, 3, 0, 0, 5, 0, 0, 0,
                                   0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 7, 1, 0, 0};
  const auto record = weir::reader::Words::load(reinterpret_cast<const char*>(bytes));
  EXPECT_EQ(record.start(), 65536u);
  EXPECT_EQ(record.duration(), 1000u);
  EXPECT_EQ(record.file(), 5u);
  EXPECT_EQ(record.size(), 4096u);
  EXPECT_EQ(record.op(), uint8_t(weir::wire::Op::kWrite));
  EXPECT_EQ(record.layer(), 1);
}

TEST(Record, a_long_duration_counts_4096_ticks) {
  const weir::reader::Words record = {0, 3, 0, uint64_t{weir::wire::kLong} << 48};
  EXPECT_EQ(record.duration(), 3u * 4096);
}

TEST(Record, units_of_newunit_are_negative) {
  const weir::reader::Words record = {0, 0, (~uint64_t{0} << 4 | 6) & weir::wire::kUnknownOffset,
                                      0};
  EXPECT_EQ(record.unit(), -10);
}

}  // namespace
