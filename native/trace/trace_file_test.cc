// SPDX-License-Identifier: Apache-2.0
// The file as its writers share it: made once, taken from without overlap, within its budget, and
// never a reason to die.
#include "trace/trace_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace weir::trace {
namespace {

constexpr uint64_t kPage = wire::kPageBytes;

class Directory {
 public:
  Directory() {
    path_ = (getenv("TMPDIR") != nullptr ? std::string(getenv("TMPDIR")) : "/tmp") +
            "/weir-record-XXXXXX";
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~Directory() {
    unlink(file().c_str());
    EXPECT_EQ(rmdir(path_.c_str()), 0) << "something was left in " << path_;
  }
  std::string file() const { return path_ + "/n1.weir"; }
  Settings settings(uint64_t budget = 1u << 20) const {
    return {{path_.data(), path_.size()}, base::text("n1"), wire::Level::kTrace, budget, {}, 0600};
  }

 private:
  std::string path_;
};

// A chunk, and whether it was refused for good or for now.
struct Taken {
  char* chunk;
  uint64_t offset;
  Refusal refusal;
};

Taken take(TraceFile& file, uint64_t size, Use use = Use::records) {
  Taken t{};
  t.chunk = static_cast<char*>(file.take(size, use, &t.offset, &t.refusal));
  return t;
}

TEST(TraceFile, begins_with_a_whole_header_page) {
  Directory directory;
  TraceFile file;
  ASSERT_EQ(file.open(directory.settings()), 0);
  const wire::FileHeader& header = file.header();
  EXPECT_EQ(memcmp(header.magic, wire::kMagic, sizeof header.magic), 0);
  EXPECT_EQ(header.version, wire::kVersion);
  EXPECT_EQ(header.end_bytes, kPage);
  EXPECT_EQ(header.budget_bytes, 1u << 20);
  EXPECT_EQ(header.level, wire::Level::kTrace);
  EXPECT_STREQ(header.node, "n1");
  EXPECT_GT(header.ns_per_tick, 0);
  EXPECT_GT(header.created_realtime_ns, 0u);
}

TEST(TraceFile, is_opened_and_not_made_anew_by_the_second_writer) {
  Directory directory;
  TraceFile first, second;
  ASSERT_EQ(first.open(directory.settings()), 0);
  ASSERT_NE(take(first, kPage).chunk, nullptr);
  ASSERT_EQ(second.open(directory.settings(uint64_t{1} << 30)), 0);
  EXPECT_EQ(second.header().end_bytes, 2 * kPage);
  EXPECT_EQ(second.header().budget_bytes, 1u << 20)
      << "the budget is the file's, not the second writer's";
}

TEST(TraceFile, a_chunk_is_zero_mapped_and_seen_by_others) {
  Directory directory;
  TraceFile file;
  ASSERT_EQ(file.open(directory.settings()), 0);
  const auto [chunk, offset, refusal] = take(file, 2 * kPage);
  ASSERT_NE(chunk, nullptr);
  EXPECT_EQ(refusal, Refusal::none);
  EXPECT_EQ(offset, kPage);
  EXPECT_TRUE(std::all_of(chunk, chunk + 2 * kPage, [](char c) { return c == 0; }));
  chunk[2 * kPage - 1] = 'x';
  std::ifstream reader(directory.file(), std::ios::binary);
  reader.seekg(static_cast<std::streamoff>(offset + 2 * kPage - 1));
  EXPECT_EQ(reader.get(), 'x');
}

TEST(TraceFile, chunks_of_many_threads_never_overlap) {
  Directory directory;
  TraceFile file;
  ASSERT_EQ(file.open(directory.settings(8u << 20)), 0);
  std::vector<std::pair<uint64_t, uint64_t>> taken;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 50; ++i) {
        const uint64_t size = (1 + (i + t) % 4) * kPage;
        const Taken got = take(file, size);
        if (got.chunk == nullptr) continue;
        const std::lock_guard lock(mutex);
        taken.emplace_back(got.offset, size);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(taken.size(), 200u);
  std::sort(taken.begin(), taken.end());
  uint64_t end = kPage;
  for (const auto& [offset, size] : taken) {
    EXPECT_EQ(offset, end);
    end = offset + size;
  }
  EXPECT_EQ(file.header().end_bytes, end);
}

TEST(TraceFile, keeps_parts_of_the_budget_for_counters_and_for_totals) {
  Directory directory;
  TraceFile file;
  constexpr uint64_t kBudget = 64 * kPage;
  ASSERT_EQ(file.open(directory.settings(kBudget)), 0);
  uint64_t records = 0, files = 0, totals = 0;
  while (take(file, kPage).chunk != nullptr) ++records;
  EXPECT_EQ(records, 64u - 8 - 1) << "an eighth is reserved, one page is the header";
  while (take(file, kPage, Use::files).chunk != nullptr) ++files;
  EXPECT_EQ(files, 6u);
  while (take(file, kPage, Use::totals).chunk != nullptr) ++totals;
  EXPECT_EQ(totals, 2u) << "a quarter of the eighth";
  EXPECT_EQ(take(file, kPage, Use::totals).refusal, Refusal::final);
  EXPECT_EQ(file.header().end_bytes, kBudget);
  struct stat status {};
  ASSERT_EQ(stat(directory.file().c_str(), &status), 0);
  EXPECT_LE(static_cast<uint64_t>(status.st_size), kBudget);
}

TEST(TraceFile, a_file_system_that_refuses_space_costs_the_chunk_and_not_the_program) {
  Directory directory;
  TraceFile file;
  ASSERT_EQ(file.open(directory.settings()), 0);
  ASSERT_NE(take(file, kPage).chunk, nullptr);
  rlimit before{}, limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = {2 * kPage, before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Taken refused = take(file, 4 * kPage);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(refused.chunk, nullptr);
  EXPECT_EQ(refused.refusal, Refusal::final);
  EXPECT_EQ(file.header().end_bytes, 2 * kPage) << "the space nobody has was not given back";
  const Taken again = take(file, kPage);
  EXPECT_NE(again.chunk, nullptr) << "and when there is space again, it is used";
  EXPECT_EQ(again.offset, 2 * kPage);
}

TEST(TraceFile, a_lack_of_descriptors_is_passing) {
  Directory directory;
  TraceFile file;
  ASSERT_EQ(file.open(directory.settings()), 0);
  rlimit before{}, limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  limit = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const Taken refused = take(file, kPage);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(refused.chunk, nullptr);
  EXPECT_EQ(refused.refusal, Refusal::passing);
  EXPECT_NE(take(file, kPage).chunk, nullptr);
}

TEST(TraceFile, another_file_of_its_name_gets_nothing) {
  Directory directory;
  TraceFile file;
  ASSERT_EQ(file.open(directory.settings()), 0);
  ASSERT_EQ(unlink(directory.file().c_str()), 0);
  TraceFile other;
  ASSERT_EQ(other.open(directory.settings()), 0);
  EXPECT_EQ(take(file, kPage).chunk, nullptr);
  EXPECT_EQ(other.header().end_bytes, kPage);
}

TEST(TraceFile, processes_that_begin_at_once_make_one_file) {
  Directory directory;
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      TraceFile file;
      _exit(file.open(directory.settings()) == 0 && take(file, kPage).chunk != nullptr ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  TraceFile file;
  ASSERT_EQ(file.open(directory.settings()), 0);
  EXPECT_EQ(file.header().end_bytes, 9 * kPage);
}

TEST(TraceFile, a_stranger_under_its_name_is_left_as_it_is) {
  Directory directory;
  std::ofstream(directory.file()) << "not a trace at all\n";
  TraceFile file;
  EXPECT_EQ(file.open(directory.settings()), -EINVAL);
  std::string line;
  std::getline(std::ifstream(directory.file()), line);
  EXPECT_EQ(line, "not a trace at all");
}

TEST(TraceFile, a_directory_that_is_not_there_is_said_by_its_error) {
  const Settings settings{
      base::text("/nonexistent/run"), base::text("n1"), wire::Level::kTrace, 1u << 20, {}, 0600};
  TraceFile file;
  EXPECT_EQ(file.open(settings), -ENOENT);
}

}  // namespace
}  // namespace weir::trace
