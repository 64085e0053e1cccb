// SPDX-License-Identifier: Apache-2.0
// Arenas with a real daemon: files are handed over, let go, and drained when a process dies.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>

#include "layers/writeback/client.h"
#include "layers/writeback/format.h"
#include "layers/machinery/node/place.h"
#include "layers/machinery/node/registry.h"

using namespace weir;

namespace {

// Each test in a process and a job of its own, since a process has one node.
class Drain : public testing::Test {
 protected:
  void SetUp() override {
    job_ = "test-" + std::to_string(getpid()) + "-" +
           testing::UnitTest::GetInstance()->current_test_info()->name();
    job_.resize(std::min<size_t>(job_.size(), 60));
    directory_ = "/dev/shm/weir." + std::to_string(geteuid()) + "." + job_;
    setenv("WEIR_JOB", job_.c_str(), 1);
    writeback::use_daemon(WEIR_DRAIN_PROGRAM);
  }
  void TearDown() override {
    const int left = system(
        (std::string(WEIR_DRAIN_PROGRAM) + " --wait " + directory_ + "/0 && rm -rf " + directory_)
            .c_str());
    EXPECT_EQ(left, 0);
  }
  // Runs in a child; returns how it ended.
  static int in_child(const std::function<void()>& what) {
    const pid_t child = fork();
    if (child == 0) {
      what();
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }
  std::string path(const char* name) const { return directory_ + "/" + name; }
  void wait() const {
    EXPECT_EQ(system((std::string(WEIR_DRAIN_PROGRAM) + " --wait " + directory_ + "/0").c_str()),
              0);
  }
  static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }

  std::string job_, directory_;
};

int registered(writeback::Arena* arena, const int& fd, const std::string& path,
               bool append = false) {
  struct stat about{};
  EXPECT_EQ(fstat(fd, &about), 0);
  return writeback::register_file(arena, {&fd, about.st_dev, about.st_ino, path.c_str(), append});
}

void put(writeback::Arena* arena, int block, uint32_t at, const std::string& text) {
  memcpy(static_cast<char*>(writeback::data(arena, block)) + at, text.data(), text.size());
  EXPECT_TRUE(writeback::mark_dirty(arena, block, at, at + static_cast<uint32_t>(text.size())));
}

}  // namespace

TEST_F(Drain, dirty_ranges_of_a_killed_process_are_written_and_no_byte_more) {
  const int status = in_child([&] {
    ASSERT_NE(node::own_directory(), nullptr);
    const std::string name = path("file");
    std::ofstream(name) << std::string(20000, '.');
    const int fd = open(name.c_str(), O_WRONLY);
    writeback::Arena* arena = writeback::create_arena(4, 8192, 2);
    ASSERT_NE(arena, nullptr);
    const int slot = registered(arena, fd, name);
    ASSERT_TRUE(writeback::held(arena, slot));
    ASSERT_TRUE(writeback::protected_now());
    const int block = writeback::take_block(arena);
    memset(writeback::data(arena, block), 'x', 8192);
    writeback::assign(arena, block, slot, 8192);
    put(arena, block, 5, "hello");
    put(arena, block, 100, "world");
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  wait();
  std::string expected(20000, '.');
  expected.replace(8197, 5, "hello").replace(8292, 5, "world");
  EXPECT_EQ(content(path("file")), expected);
}

TEST_F(Drain, an_unlinked_file_is_no_error_and_a_withdrawn_one_is_let_go) {
  const int status = in_child([&] {
    ASSERT_NE(node::own_directory(), nullptr);
    const std::string name = path("file");
    const int fd = open(name.c_str(), O_RDWR | O_CREAT, 0600);
    writeback::Arena* arena = writeback::create_arena(4, 4096, 1);
    const int slot = registered(arena, fd, name);
    ASSERT_TRUE(writeback::held(arena, slot));
    // A lock belongs to the open file, which the daemon shares until it has let go.
    writeback::unregister_file(arena, slot);
    const pid_t daemon =
        static_cast<pid_t>(reinterpret_cast<const writeback::PulsePage*>(writeback::pulse)->pid);
    for (int i = 3; i < 64; ++i) {
      char link[64], target[256] = "";
      snprintf(link, sizeof link, "/proc/%d/fd/%d", daemon, i);
      const bool any = readlink(link, target, sizeof target - 1) > 0;
      EXPECT_FALSE(any && std::string(target).find(name) != std::string::npos);
    }
    const int again = registered(arena, fd, name);
    EXPECT_EQ(again, slot) << "the only slot is free again";
    ASSERT_TRUE(writeback::held(arena, again));
    unlink(name.c_str());
    const int block = writeback::take_block(arena);
    writeback::assign(arena, block, again, 0);
    put(arena, block, 0, "nobody will read this");
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  wait();
  EXPECT_EQ(content(directory_ + "/0/errors"), "");
}

TEST_F(Drain, appended_blocks_follow_in_their_order_and_what_arrived_is_not_written_twice) {
  const int status = in_child([&] {
    ASSERT_NE(node::own_directory(), nullptr);
    const std::string name = path("log");
    const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ASSERT_EQ(write(fd, "begin\n", 6), 6);
    writeback::Arena* arena = writeback::create_arena(4, 4096, 1);
    const int slot = registered(arena, fd, name, true);
    ASSERT_TRUE(writeback::held(arena, slot));
    int blocks[3];
    for (int& block : blocks) block = writeback::take_block(arena);
    for (const int i : {2, 0, 1}) writeback::assign(arena, blocks[i], slot, writeback::kAtEnd);
    put(arena, blocks[2], 0, "first\nmore of first\n");
    put(arena, blocks[0], 0, "second\n");
    put(arena, blocks[1], 0, "third\n");
    writeback::begin_append(arena, blocks[2], 6);
    ASSERT_EQ(write(fd, "first\nmo", 8), 8);  // cut off here
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  wait();
  EXPECT_EQ(content(path("log")), "begin\nfirst\nmore of first\nsecond\nthird\n");
}

TEST_F(Drain, a_new_daemon_is_notified_of_everything) {
  const int status = in_child([&] {
    ASSERT_NE(node::own_directory(), nullptr);
    const std::string name = path("file");
    const int fd = open(name.c_str(), O_WRONLY | O_CREAT, 0600);
    writeback::Arena* arena = writeback::create_arena(4, 4096, 1);
    const int slot = registered(arena, fd, name);
    ASSERT_TRUE(writeback::held(arena, slot));
    const int block = writeback::take_block(arena);
    writeback::assign(arena, block, slot, 0);
    put(arena, block, 0, "accepted before");
    const auto* page = reinterpret_cast<const writeback::PulsePage*>(writeback::pulse);
    const uint32_t first = page->pid;
    kill(static_cast<pid_t>(first), SIGKILL);
    while (writeback::protected_now()) usleep(1000);
    EXPECT_TRUE(writeback::ensure());
    EXPECT_NE(page->pid, first);
    EXPECT_TRUE(writeback::held(arena, slot));
    unlink(name.c_str());  // so that only the descriptor leads to it
    ASSERT_EQ(link(("/proc/self/fd/" + std::to_string(fd)).c_str(), path("other").c_str()), -1);
    put(arena, block, 15, " and after");
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  wait();
  EXPECT_EQ(content(directory_ + "/0/errors"), "") << "opened by path it would have been lost";
}

TEST_F(Drain, blocks_taken_together_are_all_backed_or_none_is_taken) {
  const int status = in_child([&] {
    ASSERT_NE(node::own_directory(), nullptr);
    writeback::Arena* arena = writeback::share_arena("together", 80, 8192, 1, 0);
    ASSERT_NE(arena, nullptr);
    const int first = writeback::take_block(arena);
    ASSERT_GE(first, 0);
    int blocks[80];
    EXPECT_FALSE(writeback::take_blocks(arena, blocks, 80));
    EXPECT_EQ(writeback::free_blocks(arena), 79u);
    ASSERT_TRUE(writeback::take_blocks(arena, blocks, 79));
    EXPECT_EQ(writeback::free_blocks(arena), 0u);
    std::set<int> all{first};
    for (int i = 0; i < 79; ++i) all.insert(blocks[i]);
    EXPECT_EQ(all.size(), 80u);
    struct stat about;
    ASSERT_EQ(
        stat(
            (directory_ + "/0/shared." + std::to_string(writeback::kVersion) + ".together").c_str(),
            &about),
        0);
    EXPECT_GE(about.st_blocks * 512, 80 * 8192) << "a store into a block must not need memory";
    for (const int block : all) writeback::give_block(arena, block);
    writeback::destroy_arena(arena);
  });
  EXPECT_EQ(status, 0);
}

TEST_F(Drain, a_shared_arena_goes_on_when_one_of_its_processes_dies_with_a_block_locked) {
  const int status = in_child([&] {
    ASSERT_NE(node::own_directory(), nullptr);
    const std::string name = path("file");
    const int fd = open(name.c_str(), O_RDWR | O_CREAT, 0600);
    writeback::Arena* arena = writeback::share_arena("x", 8, 4096, 4, 100);
    ASSERT_NE(arena, nullptr);
    const int slot = registered(arena, fd, name);
    const int block = writeback::take_block(arena);
    writeback::lock_block(arena, block);
    writeback::assign(arena, block, slot, 4096);
    put(arena, block, 0, "mine");
    writeback::unlock_block(arena, block);
    EXPECT_TRUE(writeback::held(arena, slot));
    static_cast<char*>(writeback::extra(arena))[99] = 'e';
    const pid_t other = fork();
    if (other == 0) {
      writeback::forked();
      writeback::Arena* theirs = writeback::share_arena("x", 8, 4096, 4, 100);
      const int own = open(name.c_str(), O_RDWR);
      const int same = registered(theirs, own, name);
      if (theirs == nullptr || same != slot ||
          static_cast<char*>(writeback::extra(theirs))[99] != 'e' || !writeback::held(theirs, same))
        _exit(1);
      writeback::lock_block(theirs, block);
      put(theirs, block, 10, "theirs");
      kill(getpid(), SIGKILL);
    }
    int end = 0;
    waitpid(other, &end, 0);
    EXPECT_TRUE(WIFSIGNALED(end));
    writeback::lock_block(arena, block);  // from the dead, or from the daemon that has freed it
    writeback::unlock_block(arena, block);
    for (int i = 0; i < 30000 && writeback::is_dirty(arena, block); ++i) usleep(1000);
    EXPECT_EQ(content(name).substr(4096), "mine" + std::string(6, '\0') + "theirs");
    writeback::unregister_file(arena, slot);
    writeback::give_block(arena, block);
    writeback::destroy_arena(arena);
    EXPECT_NE(
        access((directory_ + "/0/shared." + std::to_string(writeback::kVersion) + ".x").c_str(),
               F_OK),
        0);
  });
  EXPECT_EQ(status, 0);
}

TEST_F(Drain, dirty_bytes_without_a_file_are_reported_once_and_not_waited_for) {
  const int status = in_child([&] {
    ASSERT_NE(node::own_directory(), nullptr);
    const std::string name = path("file");
    const int fd = open(name.c_str(), O_RDWR | O_CREAT, 0600);
    writeback::Arena* arena = writeback::share_arena("x", 8, 4096, 4, 0);
    ASSERT_NE(arena, nullptr);
    const int slot = registered(arena, fd, name);
    ASSERT_TRUE(writeback::held(arena, slot));
    const int block = writeback::take_block(arena);
    writeback::assign(arena, block, slot, 0);
    put(arena, block, 0, "left");
    writeback::unregister_file(arena, slot);
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  const std::string command = " " + directory_ + "/0 > /dev/null 2>&1";
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(WEXITSTATUS(system((WEIR_DRAIN_PROGRAM " --wait" + command).c_str())), 1);
  const std::string said = content(directory_ + "/0/errors");
  EXPECT_NE(said.find("\"lost_bytes\": 4"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(content(path("file")), "");
  EXPECT_EQ(system((WEIR_DRAIN_PROGRAM " --discard" + command).c_str()), 0);
}

namespace {

struct Left {
  enum : uint32_t { kBefore, kWithin, kEnded } volatile at;
};
sigjmp_buf left_at;
void leave(int) { siglongjmp(left_at, 1); }

// Registers and unregisters a file, again and again; stops before each time.
[[noreturn]] void register_and_leave(writeback::Arena* arena, const int& fd,
                                     const std::string& name, Left& left) {
  signal(SIGUSR1, leave);
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  for (;;) {
    left.at = Left::kBefore;
    raise(SIGSTOP);
    if (sigsetjmp(left_at, 1) == 0) {
      left.at = Left::kWithin;
      if (const int slot = registered(arena, fd, name); slot >= 0)
        writeback::unregister_file(arena, slot, &fd);
      left.at = Left::kEnded;
    }
    if (arena->header->lock.word != 0) _exit(3);
    const int slot = registered(arena, fd, name);
    if (slot < 0 || !writeback::held(arena, slot)) _exit(4);
    writeback::unregister_file(arena, slot, &fd);
  }
}

int given(const char* variable, int otherwise) {
  const char* text = getenv(variable);
  return text != nullptr ? atoi(text) : otherwise;
}

}  // namespace

// A handler that jumps out comes when the arena's lock has been let go: at every instruction
// signals wait for that.
TEST_F(Drain, a_registration_that_a_jump_left_has_no_lock) {
  const int status = in_child([&] {
    ASSERT_NE(node::own_directory(), nullptr);
    auto* const left = static_cast<Left*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const std::string name = path("file");
    const pid_t child = fork();
    if (child == 0) {
      writeback::forked();
      const int fd = open(name.c_str(), O_RDWR | O_CREAT, 0600);
      register_and_leave(writeback::share_arena("x", 8, 4096, 4, 100), fd, name, *left);
    }
    int status = 0;
    const auto stops = [&] { return waitpid(child, &status, 0) == child && WIFSTOPPED(status); };
    // Returns whether the call had ended before.
    const auto jump_after = [&](int instructions) {
      for (int n = 0; n < instructions && left->at != Left::kEnded;
           n += left->at == Left::kWithin) {
        ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
        if (!stops()) break;
      }
      const bool ended = left->at == Left::kEnded;
      if (WIFSTOPPED(status)) ptrace(PTRACE_CONT, child, nullptr, ended ? 0 : SIGUSR1);
      EXPECT_TRUE(stops()) << "exit status " << WEXITSTATUS(status) << " after instruction "
                           << instructions;
      return ended;
    };
    ASSERT_TRUE(stops());
    EXPECT_TRUE(jump_after(1 << 30));
    const int stride = 1 + 80 / given("WEIR_TEST_KILLS", 8);
    int times = 0;
    for (int at = stride; !HasFailure() && !jump_after(at); at += stride) ++times;
    EXPECT_GT(times, 10);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  });
  EXPECT_EQ(status, 0);
}
