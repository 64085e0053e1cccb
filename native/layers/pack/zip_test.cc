// SPDX-License-Identifier: Apache-2.0
#include "layers/pack/zip.h"

#include <gtest/gtest.h>

#include <string.h>

#include <string>
#include <vector>

#include "layers/pack/crc32.h"

namespace weir::layers::pack {
namespace {

Entry sample(const char* name, uint64_t offset) {
  Entry e{};
  e.name = name;
  e.name_bytes = static_cast<uint32_t>(strlen(name));
  e.crc = 0x12345678;
  e.bytes = 2048;
  e.offset = offset;
  e.sequence = 77;
  e.modified = {1'700'000'000, 123'456'789};
  e.user = 1000;
  e.group = 100;
  e.mode = 0640;
  return e;
}

void expect_same(const Entry& a, const Entry& b) {
  EXPECT_EQ(std::string(a.name, a.name_bytes), std::string(b.name, b.name_bytes));
  EXPECT_EQ(a.crc, b.crc);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.offset, b.offset);
  EXPECT_EQ(a.sequence, b.sequence);
  EXPECT_EQ(a.modified.tv_sec, b.modified.tv_sec);
  EXPECT_EQ(a.modified.tv_nsec, b.modified.tv_nsec);
  EXPECT_EQ(a.user, b.user);
  EXPECT_EQ(a.group, b.group);
  EXPECT_EQ(a.mode, b.mode);
  EXPECT_EQ(a.state, b.state);
}

TEST(Crc32, is_that_of_the_standard) {
  EXPECT_EQ(crc32(0, "123456789", 9), 0xcbf43926u);
  EXPECT_EQ(crc32(crc32(0, "1234", 4), "56789", 5), 0xcbf43926u);
}

// Long pieces are folded by the processor's own instruction, short ones go through tables.
TEST(Crc32, is_the_same_in_one_piece_and_in_short_ones) {
  std::string text;
  for (uint32_t i = 0, x = 1; i < 3000; ++i, x = x * 1664525 + 1013904223)
    text += static_cast<char>(x >> 24);
  for (size_t begin = 0; begin < 20; ++begin) {
    for (size_t n : {0u, 63u, 64u, 65u, 79u, 80u, 127u, 128u, 200u, 2048u, 2900u}) {
      uint32_t crc = 5;
      for (size_t at = 0; at < n; at += 40)
        crc = crc32(crc, &text[begin + at], n - at < 40 ? n - at : 40);
      EXPECT_EQ(crc32(5, &text[begin], n), crc) << begin << " " << n;
    }
  }
}

TEST(Zip, a_local_header_is_read_back_at_its_offset_alone) {
  std::vector<char> bytes(local_bytes(9));
  encode_local(sample("plot.0001", 4096), bytes.data());
  Entry e{};
  e.offset = 4096;
  uint64_t used = 0;
  ASSERT_EQ(parse_record(bytes.data(), bytes.size(), &e, &used), Found::kFile);
  EXPECT_EQ(used, bytes.size());
  expect_same(e, sample("plot.0001", 4096));
  e.offset = 4097;
  EXPECT_EQ(parse_record(bytes.data(), bytes.size(), &e, &used), Found::kNothing);
}

TEST(Zip, any_changed_byte_of_a_header_is_found_but_its_state) {
  std::vector<char> bytes(local_bytes(9));
  encode_local(sample("plot.0001", 0), bytes.data());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<char> damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    Entry e{};
    uint64_t used = 0;
    const Found found = parse_record(damaged.data(), damaged.size(), &e, &used);
    // Versions, flags, times of DOS and the compressed size are for other readers.
    const bool ignored = (i >= 4 && i < 14) || (i >= 18 && i < 22) || (i >= 39 && i < 48);
    if (i == state_offset(9)) {
      EXPECT_EQ(e.state, kDead);
    } else if (!ignored) {
      EXPECT_NE(found, Found::kFile) << i;
    }
  }
}

TEST(Zip, directories_have_offsets_beyond_4_GiB) {
  for (const uint64_t offset : {uint64_t{93}, uint64_t{0xffffffff}, uint64_t{1} << 40}) {
    std::vector<char> bytes(kMostCentral);
    const uint32_t n = encode_central(sample("plot.0001", offset), bytes.data());
    Entry e{};
    uint32_t used = 0;
    ASSERT_TRUE(parse_central(bytes.data(), n, &e, &used));
    EXPECT_EQ(used, n);
    EXPECT_TRUE(e.ours);
    expect_same(e, sample("plot.0001", offset));
    for (uint32_t cut = 0; cut < n; ++cut)
      EXPECT_FALSE(parse_central(bytes.data(), cut, &e, &used));
  }
}

TEST(Zip, the_end_of_an_archive_is_believed_as_far_as_the_file_goes) {
  char bytes[kTailBytes];
  encode_end({70'000, 70'000 * 100, 1 << 20}, bytes);
  Directory d;
  const uint64_t whole = 70'000 * 100 + (1 << 20) + kTailBytes;
  ASSERT_TRUE(parse_end(bytes, whole, &d));
  EXPECT_EQ(d.count, 70'000u);
  EXPECT_EQ(d.at, 1u << 20);
  EXPECT_FALSE(parse_end(bytes, whole - 1, &d));
  EXPECT_FALSE(parse_end(bytes, whole + 1, &d));
}

}  // namespace
}  // namespace weir::layers::pack
