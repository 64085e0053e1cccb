// SPDX-License-Identifier: Apache-2.0
#include "output/format/chunks/layout.h"

#include <gtest/gtest.h>

#include <random>

#include "output/format/chunks/bands.h"
#include "output/format/chunks/codec.h"

namespace weir::output::chunks {
namespace {

int64_t product(const std::vector<int64_t>& v) {
  int64_t n = 1;
  for (int64_t x : v) n *= x;
  return n;
}

// Where an element of the record must be in its chunk, the slow way.
void expect_chunks(const Layout& layout, const std::vector<int32_t>& record, std::mt19937& random) {
  Bands bands(layout, 4);
  std::vector<int> seen(record.size(), 0);
  const std::vector<int64_t>&lengths = layout.lengths(), &chunk = layout.chunk();
  const Bands::Emit emit = [&](int64_t, int64_t band, const char* data) -> Status {
    std::vector<int32_t> cut(static_cast<size_t>(layout.chunk_elements()), 77);
    for (int64_t c = 0; c < layout.chunks_per_band(); c++) {
      layout.cut(band, c, data, 4, reinterpret_cast<char*>(cut.data()));
      const std::vector<int64_t> start = layout.start_of(band, c);
      for (int64_t e = 0; e < layout.chunk_elements(); e++) {
        int64_t rest = e, element = 0, stride = 1;
        bool inside = true;
        for (size_t d = lengths.size(); d-- > 0;) {
          const int64_t at = start[d] + rest % chunk[d];
          rest /= chunk[d];
          inside = inside && at < lengths[d];
          element += at * stride;
          stride *= lengths[d];
        }
        const int32_t value = cut[static_cast<size_t>(e)];
        if (inside) {
          EXPECT_EQ(value, record[static_cast<size_t>(element)]);
          seen[static_cast<size_t>(element)]++;
        } else {
          EXPECT_EQ(value, 0);
        }
      }
    }
    return {};
  };
  // Granules in any order, each by ascending pieces.
  const int64_t granule = layout.granule();
  std::vector<int64_t> order;
  for (int64_t at = 0; at < layout.elements(); at += granule) order.push_back(at);
  std::shuffle(order.begin(), order.end(), random);
  for (int64_t begin : order) {
    const int64_t end = std::min(begin + granule, layout.elements());
    for (int64_t at = begin; at < end;) {
      const int64_t n = std::min<int64_t>(end - at, 1 + static_cast<int64_t>(random() % 40));
      ASSERT_TRUE(bands.add(0, at, n, record.data() + at, emit).ok());
      at += n;
    }
    EXPECT_TRUE(bands.empty()) << "a granule ends within a band";
  }
  for (int n : seen) ASSERT_EQ(n, 1);
}

TEST(layout, every_element_is_in_its_chunk_once) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 150; round++) {
    std::vector<int64_t> lengths, chunk;
    for (size_t d = 0, rank = 1 + random() % 4; d < rank; d++) {
      lengths.push_back(1 + static_cast<int64_t>(random() % 9));
      chunk.push_back(1 + static_cast<int64_t>(random() % static_cast<unsigned>(lengths.back())));
    }
    const Layout layout(lengths, chunk);
    std::vector<int32_t> record(static_cast<size_t>(product(lengths)));
    for (size_t i = 0; i < record.size(); i++) record[i] = static_cast<int32_t>(i) + 1;
    expect_chunks(layout, record, random);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(layout, usual_chunks_are_rows_of_a_level) {
  EXPECT_EQ(usual_chunk({40, 256, 320}, 4), (std::vector<int64_t>{1, 256, 320}));
  EXPECT_EQ(usual_chunk({28, 1986, 1770}, 4),
            (std::vector<int64_t>{1, 331, 1770}));  // 6 equal parts rather than 4
  EXPECT_EQ(usual_chunk({3, 7, 13}, 8), (std::vector<int64_t>{3, 7, 13}));
  EXPECT_EQ(usual_chunk({50, 10'000'000}, 4), (std::vector<int64_t>{1, 1'000'000}));
  EXPECT_EQ(usual_chunk({}, 8), (std::vector<int64_t>{}));
}

TEST(layout, owners_may_be_cut_at_chunks_when_chunks_divide_a_level) {
  EXPECT_EQ(Layout({28, 1986, 1770}, {1, 331, 1770}).granule(), 331 * 1770);
  EXPECT_EQ(Layout({28, 1986, 1770}, {1, 400, 1770}).granule(), 1986 * 1770);
  EXPECT_EQ(Layout({1986, 1770}, {400, 1770}).granule(), 400 * 1770);
  EXPECT_EQ(Layout({4, 10, 10}, {2, 5, 5}).granule(), 200);
}

TEST(codec, shuffle_puts_equal_bytes_of_elements_together_and_is_undone) {
  for (size_t element : {1, 2, 4, 8}) {
    for (size_t elements : {0, 1, 15, 16, 17, 64, 100}) {
      std::vector<char> from(elements * element), expected(from.size()), back(from.size());
      for (size_t i = 0; i < from.size(); i++) from[i] = static_cast<char>(i * 7 + i / 256);
      for (size_t i = 0; i < from.size(); i++)
        expected[i % element * elements + i / element] = from[i];
      std::vector<char> shuffled(from.size());
      shuffle(from.data(), from.size(), element, shuffled.data());
      EXPECT_EQ(shuffled, expected) << elements << " elements of " << element;
      unshuffle(shuffled.data(), from.size(), element, back.data());
      EXPECT_EQ(back, from) << elements << " elements of " << element;
    }
  }
}

TEST(codec, a_damaged_frame_is_refused) {
  std::vector<char> from(1000, 'a'), packed, back(1000);
  ASSERT_TRUE(compress({Compression::Kind::kZstd, 3}, from.data(), from.size(), packed).ok());
  ASSERT_TRUE(decompress_zstd(packed, back.data(), back.size()).ok());
  EXPECT_EQ(back, from);
  EXPECT_FALSE(decompress_zstd(packed, back.data(), back.size() - 1).ok());
  packed.resize(packed.size() - 3);
  EXPECT_FALSE(decompress_zstd(packed, back.data(), back.size()).ok());
}

}  // namespace
}  // namespace weir::output::chunks
