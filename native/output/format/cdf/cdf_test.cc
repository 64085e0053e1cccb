// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/format/cdf/header.h"
#include "output/format/posix_file.h"
#include "output/format/written.h"

namespace weir::output {
namespace {

TEST(cdf, header_of_the_library_is_understood) {
  Scratch scratch;
  for (const char* format : {"cdf2", "cdf5"}) {
    const Written w = odd_file(format, scratch / format, 1, 2);
    ASSERT_TRUE(w.status.ok()) << w.status.message();
    auto bytes = cdf::read_header(w.path);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    auto header = cdf::parse_header(*bytes);
    ASSERT_TRUE(header.ok());
    EXPECT_EQ(header->records, 2);
    ASSERT_EQ(header->variables.size(), w.description.variables.size());
    for (size_t i = 0; i < header->variables.size(); i++) {
      EXPECT_EQ(header->variables[i].name, w.description.variables[i].name);
      EXPECT_EQ(header->variables[i].over_time, w.description.variables[i].over_time);
    }
    for (size_t cut = 0; cut < bytes->size(); cut++) {
      auto torn = cdf::parse_header(std::span(*bytes).first(cut));
      ASSERT_FALSE(torn.ok());
      ASSERT_EQ(torn.status().message(), "incomplete header") << cut;
    }
  }
}

TEST(cdf, a_file_that_is_truncated_at_any_byte_is_refused) {
  Scratch scratch;
  for (const char* format : {"cdf2", "cdf5"}) {
    const Written w = odd_file(format, scratch / format, 1, 2);
    ASSERT_TRUE(cdf::check_size(w.path).ok()) << cdf::check_size(w.path).message();
    auto file = PosixFile::open(w.path, O_RDWR);
    ASSERT_TRUE(file.ok());
    constexpr int64_t kMostPadding = 3;
    for (int64_t size = *file->size() - kMostPadding - 1; size >= 4; size--) {
      ASSERT_TRUE(file->resize(size).ok());
      const Status cut = cdf::check_size(w.path);
      ASSERT_EQ(cut.code(), WEIR_E_FORMAT) << size;
      ASSERT_NE(cut.message().find("is truncated: it has " + std::to_string(size) + " bytes"),
                std::string::npos) << cut.message();
    }
    ASSERT_TRUE(file->resize(3).ok());
    EXPECT_TRUE(cdf::check_size(w.path).ok()) << "not of this format";
  }
}

TEST(cdf, a_damaged_header_is_refused_or_read_but_never_followed_astray) {
  Scratch scratch;
  const Written w = odd_file("cdf5", scratch / "a", 1, 1);
  auto bytes = cdf::read_header(w.path);
  ASSERT_TRUE(bytes.ok());
  for (size_t i = 0; i < bytes->size(); i++) {
    std::vector<char> damaged = *bytes;
    for (int value : {0x7f, 0xff, 0x00}) {
      damaged[i] = static_cast<char>(value);
      auto header = cdf::parse_header(damaged);
      EXPECT_TRUE(!header.ok() || header->end <= static_cast<int64_t>(damaged.size())) << i;
    }
  }
}

TEST(cdf, text_is_not_taken_for_small_integers) {
  Scratch scratch;
  auto bytes = cdf::read_header(odd_file("cdf5", scratch / "a", 1, 1).path);
  ASSERT_TRUE(bytes.ok());
  const size_t name = std::string(bytes->data(), bytes->size()).find("a8");
  const size_t type = name + 4 + 8 + 3 * 8 + 12 +
                      3;  // the name, three dimensions, no attributes, the last byte of nc_type
  ASSERT_EQ((*bytes)[type], 1);                       // NC_BYTE
  (*bytes)[type] = 2;                                 // NC_CHAR
  EXPECT_FALSE(cdf::parse_header(*bytes).ok());
}

TEST(cdf, what_cdf2_cannot_hold_is_refused_before_anything_is_written) {
  Scratch scratch;
  FileDescription d;
  d.dimensions = {{"time", 0}, {"n", 1 << 30}};
  d.time = 0;
  Variable v;
  v.name = "big";
  v.type = WEIR_FLOAT32;
  v.over_time = true;
  v.dimensions = {1};
  d.variables = {v};
  Format* cdf2 = find_format("cdf2", nullptr);
  const std::string path = scratch / "big.nc";
  auto made = cdf2->create(d, path, {}, *lone_team());
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("use format cdf5"), std::string::npos)
      << made.status().message();
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  d.dimensions[1].size = 10;
  d.variables[0].type = WEIR_INT64;
  EXPECT_FALSE(cdf2->check(d).ok());
  EXPECT_TRUE(find_format("cdf5", nullptr)->check(d).ok());
  d.variables[0].compression.kind = Compression::Kind::kZstd;
  EXPECT_FALSE(find_format("cdf5", nullptr)->check(d).ok());
}

TEST(cdf, a_file_beyond_four_gigabytes_reads_back) {
  Scratch scratch;
  FileDescription d;
  d.dimensions = {{"time", 0}, {"y", 40000}, {"x", 40000}};
  d.time = 0;
  Variable v;
  v.name = "u";
  v.type = WEIR_FLOAT64;
  v.over_time = true;
  v.dimensions = {1, 2};
  d.variables = {v, v};
  d.variables[1].name = "v";
  const std::string path = scratch / "sparse.nc";
  auto team = lone_team();
  auto file = find_format("cdf5", nullptr)->create(d, path, {}, *team);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const int64_t last = 40000LL * 40000 - 2;
  const double values[2] = {1.5, -2.5};
  std::vector<double> swapped = big_endian(values);
  ASSERT_TRUE((*file)->write(1, 1, last, 2, swapped.data()).ok());  // the rest stays a hole
  ASSERT_TRUE((*file)->end_record(1).ok());
  ASSERT_TRUE((*file)->close().ok());
  auto reader = open_reader(path);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  double back[2] = {0, 0};
  ASSERT_TRUE((*reader)->read("v", 1, last, 2, back).ok());
  EXPECT_EQ(back[0], 1.5);
  EXPECT_EQ(back[1], -2.5);
}

TEST(cdf, going_on_needs_the_same_description_and_number_of_records) {
  Scratch scratch;
  Written w = odd_file("cdf5", scratch / "a", 1, 2);
  Format* format = find_format("cdf5", nullptr);
  auto team = lone_team();
  EXPECT_FALSE(format->open(w.description, w.path, {}, *team, 3).ok());
  FileDescription other = w.description;
  other.variables.back().type = WEIR_FLOAT32;
  auto refused = format->open(other, w.path, {}, *team, 2);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find(other.variables.back().name), std::string::npos);
  auto again = format->open(w.description, w.path, {}, *team, 2);
  ASSERT_TRUE(again.ok()) << again.status().message();
}

}  // namespace
}  // namespace weir::output
