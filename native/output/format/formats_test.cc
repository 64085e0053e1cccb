// SPDX-License-Identifier: Apache-2.0
// What holds for every format.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "output/format/publish.h"
#include "output/format/written.h"

namespace weir::output {
namespace {

class Formats : public testing::TestWithParam<std::string> {};

TEST_P(Formats, one_owner_and_five_write_the_same_and_it_reads_back) {
  Scratch scratch;
  for (int owners : {1, 5}) {
    const Written w = odd_file(GetParam(), scratch / std::to_string(owners), owners, 3);
    ASSERT_TRUE(w.status.ok()) << w.status.message();
    expect_contents(w, 3);
  }
}

TEST_P(Formats, big_pieces_and_single_elements_give_the_same) {
  Scratch scratch;
  for (int64_t piece : {1, 1000}) {
    const Written w = odd_file(GetParam(), scratch / std::to_string(piece), 2, 2, piece);
    ASSERT_TRUE(w.status.ok()) << w.status.message();
    expect_contents(w, 2);
  }
}

TEST_P(Formats, a_copy_after_each_record_is_complete_up_to_there) {
  Scratch scratch;
  Written w{odd_description(GetParam()), scratch / "growing", {}};
  Format* format = find_format(GetParam(), nullptr);
  auto team = lone_team();
  auto file = format->create(w.description, w.path, {}, *team);
  ASSERT_TRUE(file.ok()) << file.status().message();
  for (int64_t r = 0; r < 4; r++) {
    ASSERT_TRUE(write_record(*format, **file, w.description, r, 0, 1, 1000).ok());
    if (r > 0) {
      // The record that is being written is not seen.
      const Written before{w.description, scratch / ("before" + std::to_string(r)), {}};
      std::filesystem::copy(w.path, before.path, std::filesystem::copy_options::recursive);
      expect_contents(before, r);
    }
    const Status ended = (*file)->end_record(r);
    ASSERT_TRUE(ended.ok()) << ended.message();
    const Written copy{w.description, scratch / ("copy" + std::to_string(r)), {}};
    std::filesystem::copy(w.path, copy.path, std::filesystem::copy_options::recursive);
    expect_contents(copy, r + 1);
  }
  ASSERT_TRUE((*file)->close().ok());
  expect_contents(w, 4);
}

TEST_P(Formats, a_file_is_gone_on_with) {
  Scratch scratch;
  const Written w = odd_file(GetParam(), scratch / "f", 1, 2);
  ASSERT_TRUE(w.status.ok()) << w.status.message();
  Format* format = find_format(GetParam(), nullptr);
  auto team = lone_team();
  auto file = format->open(w.description, w.path, {}, *team, 2);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(write_record(*format, **file, w.description, 2, 0, 1, 1000).ok());
  ASSERT_TRUE((*file)->end_record(2).ok());
  ASSERT_TRUE((*file)->close().ok());
  expect_contents(w, 3);
}

TEST_P(Formats, a_record_that_a_dead_writer_had_finished_is_taken_back_and_written_again) {
  Scratch scratch;
  const Written w = odd_file(GetParam(), scratch / "f", 1, 3);
  ASSERT_TRUE(w.status.ok()) << w.status.message();
  Format* format = find_format(GetParam(), nullptr);
  auto team = lone_team();
  EXPECT_FALSE(format->open(w.description, w.path, {}, *team, 1).ok());
  EXPECT_FALSE(format->open(w.description, w.path, {}, *team, 4).ok());
  auto file = format->open(w.description, w.path, {}, *team, 2);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Written before{w.description, scratch / "before", {}};
  std::filesystem::copy(w.path, before.path, std::filesystem::copy_options::recursive);
  expect_contents(before, 2);
  for (int64_t r : {2, 3}) {
    ASSERT_TRUE(write_record(*format, **file, w.description, r, 0, 1, 1000).ok());
    ASSERT_TRUE((*file)->end_record(r).ok());
  }
  ASSERT_TRUE((*file)->close().ok());
  expect_contents(w, 4);
}

TEST_P(Formats, an_error_of_creation_names_path_and_cause_on_every_owner) {
  Format* format = find_format(GetParam(), nullptr);
  TeamOfThreads team(3);
  std::vector<std::string> said(3);
  team.run([&](Team& mine) {
    auto file = format->create(odd_description(GetParam()), "/nowhere-at-all/x", {}, mine);
    said[static_cast<size_t>(mine.rank())] = file.ok() ? "" : file.status().message();
  });
  for (const std::string& message : said) {
    EXPECT_NE(message.find("/nowhere-at-all/x"), std::string::npos) << message;
    EXPECT_NE(message.find("No such file or directory"), std::string::npos) << message;
  }
}

TEST_P(Formats, one_description_gives_the_same_bytes_twice) {
  Scratch scratch;
  std::vector<std::string> contents;
  for (int owners : {1, 4}) {
    const Written w = odd_file(GetParam(), scratch / ("same" + std::to_string(owners)), owners, 2,
                               owners == 1 ? 1000 : 5);
    ASSERT_TRUE(w.status.ok()) << w.status.message();
    std::string all;
    std::vector<std::filesystem::path> files{w.path};
    if (std::filesystem::is_directory(w.path)) {
      files.clear();
      for (const auto& entry : std::filesystem::recursive_directory_iterator(w.path)) {
        if (entry.is_regular_file()) files.push_back(entry.path());
      }
      std::sort(files.begin(), files.end());
    }
    for (const auto& path : files) {
      std::ifstream in(path, std::ios::binary);
      all += path.lexically_relative(w.path).string() + ":" +
             std::string(std::istreambuf_iterator<char>(in), {});
    }
    contents.push_back(all);
  }
  EXPECT_TRUE(contents[0] == contents[1])
      << contents[0].size() << " and " << contents[1].size() << " bytes";
}

INSTANTIATE_TEST_SUITE_P(all, Formats, testing::ValuesIn(format_names()),
                         [](const auto& info) { return info.param; });

TEST(publish, a_store_or_a_file_of_a_run_before_is_replaced_and_other_directories_are_not) {
  Scratch scratch;
  for (const char* before : {"zarr", "cdf5", ""}) {
    for (const char* after : {"zarr", "cdf5"}) {
      if (*before) {
        ASSERT_TRUE(odd_file(before, scratch / "x", 1, 1).status.ok());
      }
      Written w = odd_file(after, scratch / ".x.part", 1, 2);
      ASSERT_TRUE(w.status.ok()) << w.status.message();
      const Status published = publish_file(w.path, scratch / "x", true);
      ASSERT_TRUE(published.ok()) << published.message();
      w.path = scratch / "x";
      expect_contents(w, 2);
      EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch / ""), {}), 1);
      std::filesystem::remove_all(scratch / "x");
    }
  }
  const Written w = odd_file("zarr", scratch / ".y.part", 1, 1);
  std::filesystem::create_directory(scratch / "y");
  std::ofstream(scratch / "y/precious") << "data";
  EXPECT_FALSE(publish_file(w.path, scratch / "y", true).ok());
  EXPECT_TRUE(std::filesystem::exists(scratch / "y/precious"));
}

TEST(formats, an_unknown_name_is_refused_with_those_there_are) {
  std::string why;
  EXPECT_EQ(find_format("netcdf", &why), nullptr);
  EXPECT_NE(why.find("cdf5"), std::string::npos);
}

}  // namespace
}  // namespace weir::output
