// SPDX-License-Identifier: Apache-2.0
#include "reader/commons.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

namespace {

using weir::reader::CommonValues;

constexpr weir::reader::CommonLimits kMany = {1 << 19, 1 << 18, {16, 4}};
constexpr int64_t kFar = (int64_t{1} << 62) + 1;  // no floating-point number

// Of one access each: the number of its name, kind, value, count.
struct One {
  int32_t name;
  uint32_t kind;
  uint64_t value, count;
};

void add(CommonValues& to, const std::vector<One>& all, uint32_t way) {
  std::vector<weir_reader_common> rows;
  std::vector<int32_t> names;
  for (const One& one : all) {
    rows.push_back({one.value, one.count, uint32_t(rows.size()), one.kind});
    names.push_back(one.name);
  }
  to.add(rows, names, way);
}

using Row = std::array<int64_t, 4>;  // key, whether it is a stride, value, count

std::vector<Row> sorted(CommonValues& from) {
  std::vector<Row> made;
  for (const auto& one : from.take())
    made.push_back({one.key, one.is_stride, one.value, one.count});
  std::sort(made.begin(), made.end());
  return made;
}

TEST(Commons, counts_of_few_values_are_exact) {
  std::mt19937 random(1);
  CommonValues found(kMany);
  std::map<std::array<int64_t, 3>, int64_t> wanted;
  for (uint32_t part = 0; part < 20; ++part) {
    const uint32_t way = part % 2;
    std::vector<One> rows;
    for (int i = 0; i < 500; ++i) {
      const One one = {int32_t(random() % 9), uint32_t(random() % 3 * 2 + way), random() % 9,
                       random() % 9};
      rows.push_back(one);
      const int64_t value = one.kind >= 4 ? -int64_t(one.value) : int64_t(one.value);
      wanted[{one.name * 2 + way, one.kind >= 2, value}] += int64_t(one.count);
    }
    add(found, rows, way);
  }
  EXPECT_FALSE(found.is_full());
  std::vector<Row> rows;
  for (const auto& [key, count] : wanted) rows.push_back({key[0], key[1], key[2], count});
  EXPECT_EQ(sorted(found), rows);
}

TEST(Commons, values_of_the_other_direction_and_of_none_are_left_out) {
  CommonValues found(kMany), nothing(kMany);
  const std::vector<One> rows = {{3, 0, 8, 2}, {3, 1, 9, 2}, {4, 5, uint64_t(kFar), 1}};
  EXPECT_TRUE(sorted(nothing).empty());
  add(found, rows, 1);
  EXPECT_EQ(sorted(found), (std::vector<Row>{{7, 0, 9, 2}, {9, 1, -kFar, 1}}));
}

TEST(Commons, of_too_many_values_the_most_common_are_kept) {
  CommonValues found({1000, 500, {16, 4}});
  constexpr int32_t kKeys = 10;
  for (uint64_t part = 0; part < 50; ++part) {
    std::vector<One> rare, often;
    for (int32_t at = 0; at < 400; ++at)
      rare.push_back({at % kKeys, 0, uint64_t(at) + 1000 * (part + 1), 1});
    for (int32_t name = 0; name < kKeys; ++name) often.push_back({name, 0, 8, 5});
    add(found, rare, 0);
    add(found, often, 0);
  }
  EXPECT_TRUE(found.is_full());
  const std::vector<Row> rows = sorted(found);
  EXPECT_LE(rows.size(), 1000u);
  for (int64_t name = 0; name < kKeys; ++name)
    EXPECT_TRUE(std::count(rows.begin(), rows.end(), Row{2 * name, 0, 8, 250}) == 1) << name;
}

TEST(Commons, of_equally_common_values_the_larger_are_kept) {
  CommonValues found({3, 0, {3, 2}});
  std::vector<One> rows;
  for (int32_t name : {0, 1}) {
    for (uint64_t value = 0; value < 9; ++value) rows.push_back({name, 2, value, 1});
  }
  add(found, rows, 0);
  add(found, {{0, 2, 3, 3}, {1, 4, 3, 1}}, 0);
  EXPECT_EQ(sorted(found),
            (std::vector<Row>{{0, 1, 3, 3}, {0, 1, 8, 1}, {2, 1, 7, 1}, {2, 1, 8, 1}}));
}

}  // namespace
