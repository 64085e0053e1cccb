// SPDX-License-Identifier: Apache-2.0
#include "output/engine/target.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weir::output {
namespace {

class Target : public testing::Test {
 protected:
  Target() {
    char directory[] = "/tmp/weir-target-XXXXXX";
    directory_ = mkdtemp(directory);
  }
  ~Target() override { std::filesystem::remove_all(directory_); }
  void make(const std::string& name) const { std::ofstream(directory_ + "/" + name) << "x"; }
  std::string answer(const std::string& name, Existing existing = Existing::kReplace) const {
    const Status status = check_target(directory_ + "/" + name, existing);
    return status.ok() ? "fine" : status.message();
  }
  static size_t in(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  std::string directory_;
};

TEST_F(Target, only_files_and_stores_are_replaced) {
  make("file");
  make("protected");
  chmod((directory_ + "/protected").c_str(), 0444);
  std::filesystem::create_directories(directory_ + "/store");
  std::filesystem::create_directories(directory_ + "/directory");
  make("store/zarr.json");
  ASSERT_EQ(symlink("file", (directory_ + "/link").c_str()), 0);
  ASSERT_EQ(symlink("none", (directory_ + "/dangling").c_str()), 0);
  ASSERT_EQ(mkfifo((directory_ + "/pipe").c_str(), 0666), 0);
  for (const char* name : {"none", "file", "store", "file/below", "none/below"})
    EXPECT_EQ(answer(name), "fine") << name;
  for (const char* name : {"link", "dangling"})
    EXPECT_TRUE(in(answer(name), "a symbolic link")) << name;
  EXPECT_TRUE(in(answer("directory"), "no Zarr store"));
  EXPECT_TRUE(in(answer("pipe"), "no regular file"));
  EXPECT_TRUE(in(answer("protected"), "write-protected"));
  for (const char* name : {"file", "store"})
    EXPECT_TRUE(in(answer(name, Existing::kRefuse), "existing = \"refuse\"")) << name;
  EXPECT_EQ(answer("none", Existing::kRefuse), "fine");
}

TEST_F(Target, one_process_at_a_time_has_the_lock) {
  const std::string path = directory_ + "/deep/er/o.nc",
                    lock_path = directory_ + "/deep/er/.o.nc.weir-part.lock";
  FileLock first, second;
  ASSERT_TRUE(prepare_target(path, "a", Existing::kReplace, 0, &first).ok());
  const Status refused = prepare_target(path, "b", Existing::kReplace, 0, &second);
  EXPECT_EQ(refused.code(), WEIR_E_FILE);
  EXPECT_TRUE(in(refused.message(), "o.nc: another process writes this file (process " +
                                        std::to_string(getpid()) + " on "))
      << refused.message();
  first.release();
  EXPECT_FALSE(std::filesystem::exists(lock_path));
  EXPECT_TRUE(prepare_target(path, "b", Existing::kReplace, 0, &second).ok());
}

TEST_F(Target, the_lock_of_the_same_owner_is_taken_over_and_not_removed_by_the_one_before) {
  const std::string path = directory_ + "/o.nc";
  FileLock given_up, successor, other;
  ASSERT_TRUE(prepare_target(path, "a", Existing::kReplace, 0, &given_up).ok());
  ASSERT_TRUE(prepare_target(path, "a", Existing::kReplace, -1, &successor).ok());
  given_up.release();
  EXPECT_FALSE(prepare_target(path, "b", Existing::kReplace, 0, &other).ok());
}

TEST_F(Target, what_a_job_before_has_left_is_removed_when_a_file_begins_anew) {
  for (const char* name : {".o.nc.weir-part", ".o.nc.weir-part.journal", ".o.nc.weir-part.lock"})
    make(name);
  FileLock lock;
  ASSERT_TRUE(prepare_target(directory_ + "/o.nc", "a", Existing::kReplace, -1, &lock).ok());
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/.o.nc.weir-part"));
  ASSERT_TRUE(prepare_target(directory_ + "/o.nc", "a", Existing::kReplace, 0, &lock).ok());
  lock.release();
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST(absolute_path, begins_in_the_directory) {
  EXPECT_EQ(absolute_path("/a", "b/c"), "/a/b/c");
  EXPECT_EQ(absolute_path("/", "b"), "/b");
  EXPECT_EQ(absolute_path("/a", "/b"), "/b");
  EXPECT_EQ(absolute_path("", "b"), "b");
}

}  // namespace
}  // namespace weir::output
