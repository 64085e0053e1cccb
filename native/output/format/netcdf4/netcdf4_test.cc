// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>

#include <fstream>

#include "output/format/netcdf4/packed.h"
#include "output/format/written.h"

namespace weir::output {
namespace {

FileDescription tiled(Compression::Kind kind) {
  FileDescription d = odd_description("netcdf4");
  for (Variable& v : d.variables) {
    if (!v.over_time || v.dimensions.empty()) continue;
    v.compression = {kind, kind == Compression::Kind::kNone ? 0 : 2};
    v.chunk = std::vector<int64_t>(v.dimensions.size(), 3);  // sticks out of every dimension
  }
  return d;
}

class Chunks : public testing::TestWithParam<Compression::Kind> {};

TEST_P(Chunks, that_fit_nowhere_read_back_and_do_not_depend_on_owners) {
  Scratch scratch;
  std::vector<std::string> bytes;
  for (int owners : {1, 3}) {
    const Written w =
        write_file("netcdf4", tiled(GetParam()), scratch / std::to_string(owners), owners, 3, 11);
    ASSERT_TRUE(w.status.ok()) << w.status.message();
    expect_contents(w, 3);
    std::ifstream in(w.path, std::ios::binary);
    bytes.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  EXPECT_TRUE(bytes[0] == bytes[1]);
}

INSTANTIATE_TEST_SUITE_P(all, Chunks,
                         testing::Values(Compression::Kind::kNone, Compression::Kind::kDeflate,
                                         Compression::Kind::kZstd));

TEST(netcdf4, time_goes_on_beyond_its_first_chunk) {
  Scratch scratch;
  FileDescription d;
  d.dimensions = {{"time", 0}, {"bnds", 2}, {"x", 3}};
  d.time = 0;
  for (const char* name : {"time", "time_bnds", "u"}) {
    Variable v;
    v.name = name;
    v.over_time = true;
    if (v.name == "time_bnds") v.dimensions = {1};
    if (v.name == "u") v.dimensions = {2};
    d.variables.push_back(v);
  }
  d.variables[2].compression = {Compression::Kind::kZstd, 1};
  const Written w = write_file("netcdf4", d, scratch / "long", 2, 1030);
  ASSERT_TRUE(w.status.ok()) << w.status.message();
  expect_contents(w, 1030);
}

TEST(netcdf4, a_record_of_many_chunks_and_the_default_chunk) {
  Scratch scratch;
  FileDescription d;
  d.dimensions = {{"time", 0}, {"lev", 5}, {"y", 600}, {"x", 400}};
  d.time = 0;
  for (const char* name : {"plain", "packed"}) {
    Variable v;
    v.name = name;
    v.type = WEIR_FLOAT32;
    v.over_time = true;
    v.dimensions = {1, 2, 3};
    d.variables.push_back(v);
  }
  d.variables[1].compression = {Compression::Kind::kZstd, 1};
  const Written w = write_file("netcdf4", d, scratch / "big", 3, 2, 70'001);
  ASSERT_TRUE(w.status.ok()) << w.status.message();
  expect_contents(w, 2);
}

TEST(netcdf4, chunks_that_need_too_much_memory_are_refused) {
  FileDescription d;
  d.dimensions = {{"time", 0}, {"lev", 100}, {"y", 10'000}, {"x", 10'000}};
  d.time = 0;
  Variable v;
  v.name = "u";
  v.type = WEIR_FLOAT32;
  v.over_time = true;
  v.dimensions = {1, 2, 3};
  v.chunk = {10, 100, 100};
  d.variables = {v};
  const Status status = find_format("netcdf4", nullptr)->check(d);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("variable u"), std::string::npos) << status.message();
  d.variables[0].chunk = {1, 100, 100};
  EXPECT_TRUE(find_format("netcdf4", nullptr)->check(d).ok());
  d.variables[0].chunk = {1, 100};
  EXPECT_FALSE(find_format("netcdf4", nullptr)->check(d).ok());
}

TEST(netcdf4, compressed_chunks_beyond_the_limit_wait_in_a_file) {
  Scratch scratch;
  netcdf4::Packed packed(scratch / "x.nc", 100);
  for (int i = 0; i < 10; i++) {
    const size_t begin = packed.memory().size();
    packed.memory().insert(packed.memory().end(), static_cast<size_t>(30 + i),
                           static_cast<char>('a' + i));
    ASSERT_TRUE(packed.take(0, i, 0, begin).ok());
    EXPECT_LE(packed.memory().size(), 100u);
  }
  auto out = PosixFile::open(scratch / "out", O_RDWR | O_CREAT);
  ASSERT_TRUE(out.ok());
  for (const netcdf4::PackedChunk& chunk : packed.chunks())
    ASSERT_TRUE(packed.write_to(*out, chunk, chunk.band * 100).ok());
  for (int i = 0; i < 10; i++) {
    std::string back(static_cast<size_t>(30 + i), '?');
    ASSERT_TRUE(out->read_at(back.data(), back.size(), i * 100).ok());
    EXPECT_EQ(back, std::string(back.size(), static_cast<char>('a' + i)));
  }
  packed.clear();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch / ""), {}), 1);
}

}  // namespace
}  // namespace weir::output
