// SPDX-License-Identifier: Apache-2.0
// Files whose records are longer than what an only owner keeps of them.
#include <signal.h>
#include <sys/resource.h>

#include <fstream>

#include "output/format/written.h"

namespace weir::output::grib {
namespace {

// A record has 25 messages of 0.4 MB and 24 of some less.
FileDescription large_description() {
  FileDescription d = odd_description_of_grib("grib2");
  d.dimensions = {{"lat", 401}, {"lon", 500}, {"plev", 24}, {"time", 0}};
  const auto set = [&](const char* name, int count, double first, double step) {
    Variable& v = *std::ranges::find(d.variables, name, &Variable::name);
    v.values.clear();
    for (int i = 0; i < count; i++) v.values.push_back(first + step * i);
  };
  set("lat", 401, 50, -0.25);
  set("lon", 500, 0, 0.25);
  set("plev", 24, 1000, -10);
  return d;
}

int64_t bytes_in(const std::string& path) {
  return static_cast<int64_t>(std::filesystem::file_size(path));
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class LargeRecords : public testing::Test {
 protected:
  Result<std::unique_ptr<File>> create(const std::string& path, const FileOptions& options,
                                       Team& team) {
    return format_.create(description_, path, options, team);
  }
  // Ten levels in each call of write.
  Status write(File& file, int64_t record, const Team& team) {
    return write_record(format_, file, description_, record, team.rank(), team.size(),
                        10 * 401 * 500);
  }

  Scratch scratch_;
  const FileDescription description_ = large_description();
  Format& format_ = *find_format("grib2", nullptr);
  const FileOptions behind_{.writes_behind = true};
};

TEST_F(LargeRecords, are_the_same_bytes_whoever_writes_them_and_when) {
  const std::string by_two = scratch_ / "two";
  TeamOfThreads team(2);
  team.run([&](Team& mine) {
    auto file = create(by_two, {}, mine);
    for (int64_t r = 0; r < 2; r++) {
      EXPECT_TRUE(write(**file, r, mine).ok());
      EXPECT_TRUE((*file)->end_record(r).ok());
    }
    EXPECT_TRUE((*file)->close().ok());
  });
  const auto lone = lone_team();
  for (const bool writes_behind : {false, true}) {
    for (const int64_t threads : {1, 3}) {
      const std::string path = scratch_ / "one";
      auto file = create(path, {.threads = threads, .writes_behind = writes_behind}, *lone);
      for (int64_t r = 0; r < 2; r++) {
        const int64_t before = bytes_in(path);
        ASSERT_TRUE(write(**file, r, *lone).ok());
        EXPECT_GT(bytes_in(path), before + (8 << 20));  // most of it has gone
        ASSERT_TRUE((*file)->end_record(r).ok());
      }
      ASSERT_TRUE((*file)->close().ok());
      EXPECT_TRUE(contents(path) == contents(by_two)) << threads << " threads";
    }
  }
}

TEST_F(LargeRecords, that_did_not_end_are_taken_off) {
  const std::string path = scratch_ / "f";
  const auto lone = lone_team();
  int64_t whole = 0;
  {
    auto file = create(path, behind_, *lone);
    ASSERT_TRUE(write(**file, 0, *lone).ok());
    ASSERT_TRUE((*file)->end_record(0).ok());
    whole = bytes_in(path);
    ASSERT_TRUE(write(**file, 1, *lone).ok());
    EXPECT_GT(bytes_in(path), whole);
  }
  EXPECT_EQ(bytes_in(path), whole);
  auto file = format_.open(description_, path, behind_, *lone, 1);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(write(**file, 1, *lone).ok());
  ASSERT_TRUE((*file)->end_record(1).ok());
  ASSERT_TRUE((*file)->close().ok());
  const Written w{description_, path, {}};
  expect_contents(w, 2);
}

TEST_F(LargeRecords, that_cannot_be_written_are_an_error_and_taken_off) {
  const std::string path = scratch_ / "f";
  const auto lone = lone_team();
  auto file = create(path, behind_, *lone);
  ASSERT_TRUE(write(**file, 0, *lone).ok());
  ASSERT_TRUE((*file)->end_record(0).ok());
  const int64_t whole = bytes_in(path);
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit least{static_cast<rlim_t>(whole) + 1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &least), 0);
  Status failed = write(**file, 1, *lone);
  if (failed.ok()) failed = (*file)->end_record(1);
  EXPECT_EQ(failed.code(), WEIR_E_FILE);
  EXPECT_NE(failed.message().find(path), std::string::npos) << failed.message();
  const Status again = (*file)->end_record(1);
  EXPECT_EQ(again.message(), failed.message());
  file->reset();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(bytes_in(path), whole);
}

}  // namespace
}  // namespace weir::output::grib
