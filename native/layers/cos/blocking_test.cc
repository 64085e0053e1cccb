// SPDX-License-Identifier: Apache-2.0
#include "layers/cos/blocking.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::layers::cos {
namespace {

// The whole file as the layer would write it.
std::vector<uint8_t> file_of(const std::vector<uint8_t>& data) {
  const Tail tail(data.size());
  std::vector<uint8_t> file(tail.file_bytes());
  for (uint64_t block = 0; block < tail.first_block; ++block)
    store_word(&file[block * kBlock], block_control(block, kBlockWords - 1));
  memcpy(&file[tail.first_block * kBlock], tail.image, tail.bytes);
  for (uint64_t i = 0; i < data.size(); ++i) file[physical(i)] = data[i];
  return file;
}

struct Read {
  std::vector<uint8_t> data;
  std::vector<uint64_t> modes;  // of the record control words, in their order
};

// A plain reader of any blocked file, written from the table in README.md: follows the control
// words from the first block on.
Read read_blocked(const std::vector<uint8_t>& file) {
  Read read;
  uint64_t block = 0, word = 0;
  while (block * kBlock < file.size()) {
    const uint64_t control = load_word(&file[block * kBlock + word * kWord]);
    const uint64_t mode = control >> 60, next = control & 0x1ff;
    if (mode == 0) EXPECT_EQ(control >> 9 & 0xffffff, block);
    else read.modes.push_back(mode);
    if (mode == 8) read.data.resize(read.data.size() - (control >> 54 & 0x3f) / 8);
    if (mode == 15) break;
    for (uint64_t i = 1; i <= next && word + i < kBlockWords; ++i) {
      const uint8_t* const at = &file[block * kBlock + (word + i) * kWord];
      read.data.insert(read.data.end(), at, at + kWord);
    }
    word += next + 1;
    if (word >= kBlockWords) ++block, word = 0;
  }
  return read;
}

class Size : public testing::TestWithParam<uint64_t> {};

TEST_P(Size, comes_back_from_the_control_words) {
  std::vector<uint8_t> data(GetParam());
  for (uint64_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 7 + i / 256);
  const std::vector<uint8_t> file = file_of(data);
  ASSERT_EQ(file.size() % kBlock, 0u);
  const Read read = read_blocked(file);
  EXPECT_EQ(read.data, data);
  EXPECT_EQ(read.modes, (std::vector<uint64_t>{8, 14, 15}));
  const uint64_t blocks = file.size() / kBlock, tail = blocks < kTailBlocks ? blocks : kTailBlocks;
  EXPECT_EQ(record_bytes(&file[(blocks - tail) * kBlock], tail, blocks - tail),
            static_cast<int64_t>(data.size()));
}

INSTANTIATE_TEST_SUITE_P(AroundTheEdges, Size,
                         testing::Values(0, 1, 7, 8, 9, kData - 25, kData - 24, kData - 17,
                                         kData - 16, kData - 9, kData - 8, kData - 1, kData,
                                         kData + 1, kData + 8, 2 * kData - 16, 2 * kData,
                                         2 * kData + 1, 10 * kData + 5));

TEST(End, of_what_is_not_blocked_is_refused) {
  std::vector<uint8_t> image(kTailBlocks * kBlock, 'x');
  EXPECT_EQ(record_bytes(image.data(), kTailBlocks, 0), -1);
  const std::vector<uint8_t> file = file_of(std::vector<uint8_t>(100));
  EXPECT_EQ(record_bytes(file.data(), 1, 7), -1) << "the block's number is another";
}

}  // namespace
}  // namespace weir::layers::cos
