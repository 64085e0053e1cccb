// SPDX-License-Identifier: Apache-2.0
#include "testfs/server.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <memory>

#include "testfs/options.h"

namespace weir::testfs {
namespace {

constexpr uint64_t kUs = 1000, kMs = 1'000'000;

struct Served : testing::Test {
  std::unique_ptr<State> state{new State{}};
  Options& options = state->options;
  Server server;

  void SetUp() override {
    set_defaults(options);
    ASSERT_TRUE(server.open(options, ""));
  }
  bool set(const char* text, When when = When::running) {
    message.clear();
    return set_option(*state, text, when, &message);
  }
  std::string message;
};

TEST_F(Served, without_latency_the_answer_is_due_at_once) {
  EXPECT_EQ(server.answer_ns(Cost::metadata, 5, 0), 5u);
  EXPECT_EQ(server.answer_ns(Cost::data, 5, 1 << 20), 5u);
}

TEST_F(Served, metadata_is_served_one_at_a_time_and_the_way_is_not) {
  ASSERT_TRUE(set("round_trip_us=300") && set("metadata_us=50"));
  EXPECT_EQ(server.answer_ns(Cost::metadata, 1 * kMs, 0), 1 * kMs + 350 * kUs);
  EXPECT_EQ(server.answer_ns(Cost::metadata, 1 * kMs, 0), 1 * kMs + 400 * kUs);
  EXPECT_EQ(server.answer_ns(Cost::metadata, 1 * kMs + 60 * kUs, 0), 1 * kMs + 450 * kUs);
  EXPECT_EQ(server.answer_ns(Cost::metadata, 9 * kMs, 0), 9 * kMs + 350 * kUs);
}

TEST_F(Served, data_requests_share_the_bandwidth_and_not_their_latency) {
  ASSERT_TRUE(set("round_trip_us=300") && set("data_us=200") && set("bandwidth_mb=1000"));
  EXPECT_EQ(server.answer_ns(Cost::data, 1 * kMs, 1'000'000), 2 * kMs + 500 * kUs);
  EXPECT_EQ(server.answer_ns(Cost::data, 1 * kMs, 1'000'000), 3 * kMs + 500 * kUs);
  EXPECT_EQ(server.answer_ns(Cost::data, 1 * kMs, 0), 1 * kMs + 500 * kUs);
  EXPECT_EQ(server.answer_ns(Cost::metadata, 1 * kMs, 0), 1 * kMs + 300 * kUs);
}

TEST_F(Served, what_is_not_waited_for_costs_nothing) {
  ASSERT_TRUE(set("round_trip_us=300"));
  EXPECT_EQ(server.answer_ns(Cost::nothing, 7, 0), 0u);
}

TEST_F(Served, space_is_taken_until_there_is_none) {
  EXPECT_EQ(take_space(options, 100), 100u);
  ASSERT_TRUE(set("enospc_after=150"));
  EXPECT_EQ(take_space(options, 100), 100u);
  EXPECT_EQ(take_space(options, 100), 50u);
  EXPECT_EQ(take_space(options, 100), 0u);
  ASSERT_TRUE(set("enospc_after=none"));
  EXPECT_EQ(take_space(options, 100), 100u);
}

TEST_F(Served, a_rate_fails_that_part_of_the_requests) {
  ASSERT_TRUE(set("fail=write+fsync:ENOSPC:0.1:42"));
  int failures = 0;
  for (int i = 0; i < 10'000; ++i) failures += injected_error(options, Kind::write) == ENOSPC;
  EXPECT_GT(failures, 800);
  EXPECT_LT(failures, 1200);
  EXPECT_EQ(injected_error(options, Kind::read), 0);
}

TEST_F(Served, groups_of_requests_can_be_failed) {
  ASSERT_TRUE(set("fail=metadata:5"));
  for (Kind kind : {Kind::lookup, Kind::open, Kind::flush, Kind::truncate})
    EXPECT_EQ(injected_error(options, kind), EIO);
  for (Kind kind : {Kind::read, Kind::write, Kind::fsync, Kind::release})
    EXPECT_EQ(injected_error(options, kind), 0);
}

TEST_F(Served, texts_that_are_no_options_change_nothing) {
  for (const char* text :
       {"", "=", "=1", "data_us", "data_us=", "data_us=1x", "data_us= 1", "data_us=nan",
        "data_us=inf", "fail=:", "fail=write:", "fail=write:EIO:", "fail=write:EIO:0.5:1:2",
        "fail=write:EIO:after", "fail=write+:EIO", "hang=-1", "enospc_after=1e30", "direct_io=2"}) {
    const std::string before = options_json(options);
    EXPECT_FALSE(set(text)) << text;
    EXPECT_NE(message, "") << text;
    EXPECT_EQ(options_json(options), before) << text;
  }
}

TEST(Transfers, fall_into_classes_of_size_and_alignment) {
  Transfers of = {};
  for (uint64_t size : {0, 1, 2, 3, 4096, 4097}) count_transfer(of, 0, size);
  count_transfer(of, 4096, 1 << 20);
  count_transfer(of, 1 << 20, 1 << 20);
  count_transfer(of, 1, uint64_t{1} << 40);
  EXPECT_EQ(of.sizes[0], 2u);
  EXPECT_EQ(of.sizes[1], 1u);
  EXPECT_EQ(of.sizes[2], 1u);
  EXPECT_EQ(of.sizes[12], 1u);
  EXPECT_EQ(of.sizes[13], 1u);
  EXPECT_EQ(of.sizes[20], 2u);
  EXPECT_EQ(of.sizes[kSizeClasses - 1], 1u);
  EXPECT_EQ(of.offsets_4k, 8u);
  EXPECT_EQ(of.offsets_1m, 7u);
  EXPECT_EQ(of.aligned_4k, 4u);
  EXPECT_EQ(of.aligned_1m, 2u);
}

}  // namespace
}  // namespace weir::testfs
