// SPDX-License-Identifier: Apache-2.0
// The front over files of a temporary directory: which files get layers, what the position does,
// when a file leaves, which errors come.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "layers/hold/hold.h"
#include "layers/system/declared.h"
#include "layers/machinery/node/registry.h"
#include "layers/machinery/stack/busy.h"
#include "layers/machinery/stack/build.h"
#include "layers/machinery/stack/lock.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/process.h"
#include "layers/machinery/stack/table.h"

namespace weir::stack {
namespace {

int fails_with = 0;  // errno of the layer below hold, 0: none
int writes_seen = 0;

sigjmp_buf* jumps_to = nullptr;

Result write_failing(Layer& l, const Transfer& t) {
  ++writes_seen;
  if (jumps_to != nullptr) siglongjmp(*jumps_to, 1);
  return fails_with != 0 ? -fails_with : write_below(l, t);
}
Result refuse(Layer&) { return -EINVAL; }

constexpr Kind kFailing{.name = "failing",
                        .flags = 0,
                        .state_bytes = 0,
                        .statistics_count = 0,
                        .create = nullptr,
                        .open = nullptr,
                        .ready = nullptr,
                        .read = nullptr,
                        .write = write_failing,
                        .size = nullptr,
                        .truncate = nullptr,
                        .flush = nullptr,
                        .sync = nullptr,
                        .invalidate = nullptr,
                        .close = nullptr};
constexpr Kind kRefusing{.name = "refusing",
                         .flags = 0,
                         .state_bytes = 0,
                         .statistics_count = 0,
                         .create = refuse,
                         .open = nullptr,
                         .ready = nullptr,
                         .read = nullptr,
                         .write = nullptr,
                         .size = nullptr,
                         .truncate = nullptr,
                         .flush = nullptr,
                         .sync = nullptr,
                         .invalidate = nullptr,
                         .close = nullptr};

// Holds from the call on at which the test wants it to; what it would hold is of no matter here.
bool is_to_begin = false;
int begun = 0;

bool begins(Layer& l) {
  if (is_to_begin) begun += begin_to_hold(l);
  return true;
}
constexpr Kind kLate{
    .name = "late",
    .flags = kHolds | kBeginsEmpty,
    .state_bytes = 0,
    .statistics_count = 0,
    .create = nullptr,
    .open = nullptr,
    .ready = nullptr,
    .read = [](Layer& l, const Transfer& t) { return begins(l) ? read_below(l, t) : 0; },
    .write = [](Layer& l, const Transfer& t) { return begins(l) ? write_below(l, t) : 0; },
    .size = nullptr,
    .truncate = nullptr,
    .flush = nullptr,
    .sync = nullptr,
    .invalidate = nullptr,
    .close = nullptr};

int threads_of_process() {
  int n = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/task"))
    ++n;
  return n;
}

// Another's opening of the file for writing, as the node sees it, and its end.
void open_elsewhere(int fd) {
  struct stat about {};
  ASSERT_EQ(fstat(fd, &about), 0);
  node::Lease* lease = nullptr;
  EXPECT_EQ(node::open({about.st_dev, about.st_ino, node::kWrites, 99, nullptr}, &lease),
            node::Verdict::kPlain);
  node::close(lease);
}

constexpr char kRules[] =
    "weir-rules 1\n"
    "rule source=t:1:1 name=*.hold stack=hold:16|failing|system\n"
    "rule source=t:2:1 name=*.pass stack=failing|system\n"
    "rule source=t:3:1 name=*.none stack=system\n"
    "rule source=t:4:1 name=*.refused stack=refusing|system\n"
    "rule source=t:5:1 name=*.unknown stack=magic|system\n"
    "rule source=t:6:1 name=*.late stack=late|system\n"
    "rule source=t:7:1 name=*.both stack=late|hold:16|system\n";

class Front : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const Kind* const kinds[] = {&layers::kSystem, &layers::kHold, &kFailing, &kRefusing,
                                        &kLate};
    static rules::Rules rules;
    const char* mistake = nullptr;
    ASSERT_TRUE(rules::parse(base::text(kRules), &rules, &mistake)) << mistake;
    set_kinds(kinds, 5);
    setenv("WEIR_JOB", ("stack-test-" + std::to_string(getpid())).c_str(), 1);
    begin(rules, -1);
  }
  void SetUp() override {
    char name[] = "/tmp/weir-stack-XXXXXX";
    directory_ = mkdtemp(name);
    fails_with = 0;
    writes_seen = 0;
    is_to_begin = false;
    begun = 0;
  }
  void TearDown() override {
    [[maybe_unused]] const int done = system(("rm -r " + directory_).c_str());
  }

  int open_file(const char* name, int flags = O_RDWR | O_CREAT) {
    const std::string path = directory_ + "/" + name;
    return opening(AT_FDCWD, path.c_str(), flags, 0644,
                   [&] { return open(path.c_str(), flags, 0644); });
  }
  static int close_file(int fd) {
    return closing(fd, [=] { return close(fd); });
  }
  static ssize_t write_text(int fd, const char* text) {
    return write(file_at(fd), fd, text, strlen(text));
  }
  // What the kernel has, whatever the layers hold.
  static std::string in_kernel(int fd) {
    char b[256];
    const ssize_t n = ::pread(fd, b, sizeof b, 0);
    return std::string(b, n > 0 ? static_cast<size_t>(n) : 0);
  }

  std::string directory_;
};

TEST_F(Front, only_files_of_rules_with_layers_are_under_layers) {
  for (const auto& [name, layered] : {std::pair{"a.hold", true},
                                      {"a.pass", true},
                                      {"a.none", false},
                                      {"a.refused", false},
                                      {"a.unknown", false},
                                      {"a.other", false}}) {
    const int fd = open_file(name);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(file_at(fd) != nullptr, layered) << name;
    EXPECT_EQ(close_file(fd), 0);
    EXPECT_EQ(known_at(fd), nullptr);
  }
}

TEST_F(Front, a_file_whose_layers_keep_nothing_yet_costs_no_thread_and_leaves_when_another_has_it) {
  const int threads = threads_of_process();
  const int fd = open_file("a.late");
  File* const f = file_at(fd);
  ASSERT_NE(f, nullptr);
  EXPECT_TRUE(f->empty);
  EXPECT_EQ(write_text(fd, "plain"), 5);
  EXPECT_FALSE(any_unwritten()) << "the kernel knows the size";
  EXPECT_EQ(threads_of_process(), threads);
  open_elsewhere(fd);
  EXPECT_FALSE(f->left) << "nobody asks it: it finds out";
  is_to_begin = true;
  EXPECT_EQ(write_text(fd, " too"), 4);
  EXPECT_TRUE(f->left);
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(in_kernel(fd), "plain too");
  EXPECT_EQ(threads_of_process(), threads);
  close_file(fd);
}

TEST_F(Front, a_file_whose_layers_have_begun_to_keep_bytes_is_called_back) {
  is_to_begin = true;
  const int fd = open_file("a.late");
  File* const f = file_at(fd);
  EXPECT_EQ(write_text(fd, "kept"), 4);
  EXPECT_EQ(begun, 1);
  EXPECT_FALSE(f->empty);
  EXPECT_TRUE(any_unwritten());
  open_elsewhere(fd);
  EXPECT_TRUE(f->left);
  EXPECT_FALSE(any_unwritten());
  close_file(fd);
}

TEST_F(Front, what_goes_to_the_end_of_a_file_or_into_a_layer_of_another_kind_counts_as_kept) {
  for (const char* name : {"a.late", "a.both"}) {
    const int fd = open_file(name, O_RDWR | O_CREAT | O_APPEND);
    EXPECT_EQ(file_at(fd)->empty, std::string(name) == "a.late");
    EXPECT_EQ(write_text(fd, "end"), 3);
    EXPECT_FALSE(file_at(fd)->empty);
    close_file(fd);
  }
}

TEST_F(Front, a_layer_without_an_operation_is_not_on_the_way) {
  const int fd = open_file("a.hold");
  const File* f = file_at(fd);
  EXPECT_EQ(f->layer_count, 3);
  EXPECT_EQ(f->enter.write, f->top);
  EXPECT_EQ(f->top->next.write, f->top + 1);
  EXPECT_EQ(f->top->next.read, f->bottom);
  EXPECT_EQ(f->top->below, f->top + 1);
  EXPECT_EQ(f->bottom->below, nullptr);
  close_file(fd);
}

TEST_F(Front, bytes_are_held_until_a_flush_and_seen_before) {
  const int fd = open_file("a.hold");
  File* f = file_at(fd);
  EXPECT_EQ(write_text(fd, "held"), 4);
  EXPECT_EQ(in_kernel(fd), "");
  struct stat about {};
  ASSERT_EQ(fstat(fd, &about), 0);
  patch_size(f, fd, &about);
  EXPECT_EQ(about.st_size, 4);
  ASSERT_EQ(stat((directory_ + "/a.hold").c_str(), &about), 0);
  EXPECT_EQ(about.st_size, 0);
  EXPECT_TRUE(any_unwritten());
  patch_size_of_path(&about);
  EXPECT_EQ(about.st_size, 4);
  EXPECT_EQ(flush(f, fd), 0);
  EXPECT_EQ(in_kernel(fd), "held");
  EXPECT_FALSE(any_unwritten());
  close_file(fd);
}

TEST_F(Front, copies_share_the_position_and_the_last_one_ends_it) {
  const int fd = open_file("a.hold"), copy = dup(fd);
  copied(fd, copy);
  EXPECT_EQ(write_text(fd, "one "), 4);
  EXPECT_EQ(write_text(copy, "two"), 3);
  EXPECT_EQ(lseek(file_at(fd), fd, 0, SEEK_CUR), 7);
  EXPECT_EQ(close_file(fd), 0);  // the number that the file went by
  ASSERT_NE(file_at(copy), nullptr);
  EXPECT_EQ(file_at(copy)->descriptor, copy);
  EXPECT_EQ(in_kernel(copy), "one two");
  EXPECT_EQ(write_text(copy, " three"), 6);
  EXPECT_EQ(flush(file_at(copy), copy), 0);
  EXPECT_EQ(in_kernel(copy), "one two three");
  EXPECT_EQ(close_file(copy), 0);
}

TEST_F(Front, a_file_that_leaves_is_the_kernels_with_its_position) {
  const int fd = open_file("a.hold");
  write_text(fd, "position");
  leave(file_at(fd), Reason::kMapped);
  EXPECT_EQ(file_at(fd), nullptr);
  EXPECT_NE(known_at(fd), nullptr);
  EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 8);
  EXPECT_EQ(in_kernel(fd), "position");
  EXPECT_EQ(close_file(fd), 0);
}

TEST_F(Front, a_second_opening_sends_the_first_to_the_kernel_when_one_writes) {
  const int fd = open_file("a.hold");
  write_text(fd, "seen");
  const int reader = open_file("a.hold", O_RDONLY);
  EXPECT_EQ(file_at(fd), nullptr);
  EXPECT_EQ(file_at(reader), nullptr);
  EXPECT_EQ(in_kernel(reader), "seen");
  close_file(fd);
  close_file(reader);
  const int one = open_file("a.hold", O_RDONLY), two = open_file("a.hold", O_RDONLY);
  EXPECT_NE(file_at(one), nullptr);  // readers do not disturb each other
  EXPECT_NE(file_at(two), nullptr);
  close_file(one);
  close_file(two);
}

TEST_F(Front, a_late_error_is_reported_once) {
  const int fd = open_file("a.hold");
  write_text(fd, "lost");
  fails_with = ENOSPC;
  errno = 0;
  EXPECT_EQ(fsync(file_at(fd), fd, false), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(fsync(file_at(fd), fd, false), 0);
  EXPECT_EQ(write_text(fd, "lost"), 4);
  EXPECT_EQ(close_file(fd), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(close(fd), -1);  // closed all the same
}

TEST_F(Front, an_error_of_leaving_waits_for_the_next_write) {
  const int fd = open_file("a.hold");
  write_text(fd, "lost");
  fails_with = EIO;
  leave(file_at(fd), Reason::kForked);
  ASSERT_NE(file_at(fd), nullptr);
  EXPECT_EQ(write_text(fd, "x"), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(file_at(fd), nullptr);
  EXPECT_EQ(close_file(fd), 0);
}

// As far below as a signal handler's frame is: a second call from about the same depth finds that
// the first was left by a jump.
template <typename Call>
[[gnu::noinline]] auto from_below(Call call) {
  char frame[4096];
  __asm__ volatile("" : : "r"(frame) : "memory");
  const auto result = call();
  __asm__ volatile("" : : "r"(frame) : "memory");
  return result;
}

TEST_F(Front, a_call_within_a_call_goes_straight_to_the_kernel) {
  const int fd = open_file("a.hold");
  File* f = file_at(fd);
  write_text(fd, "ab");
  ASSERT_TRUE(lock(f));  // as an interrupted call of this thread has it
  EXPECT_FALSE(from_below([&] { return lock(f); }));
  EXPECT_EQ(from_below([&] { return write_text(fd, "cd"); }), 2);
  EXPECT_EQ(in_kernel(fd), std::string("\0\0cd", 4));
  unlock(f);
  EXPECT_EQ(write_text(fd, "ef"), 2);
  close_file(fd);
  const int again = open_file("a.hold");
  EXPECT_EQ(in_kernel(again), "abcdef");
  close_file(again);
}

// As a handler of a timer does that ends a call which takes too long.
__attribute__((noinline)) void flush_and_jump(File* f, int fd, sigjmp_buf* to) {
  volatile char room[4096];  // the call's frame lies deep, that of the next one does not
  room[0] = 1;
  jumps_to = to;
  flush(f, fd);
  EXPECT_EQ(room[0], 0) << "the jump did not come";
}

TEST_F(Front, a_call_that_a_handler_jumped_out_of_has_given_up_the_file) {
  const int fd = open_file("a.hold");
  File* f = file_at(fd);
  write_text(fd, "kept");
  sigjmp_buf here;
  if (sigsetjmp(here, 1) == 0) flush_and_jump(f, fd, &here);
  jumps_to = nullptr;
  EXPECT_EQ(write_text(fd, " on"), 3);
  EXPECT_EQ(in_kernel(fd), "");
  EXPECT_EQ(fsync(f, fd, false), 0);
  EXPECT_EQ(in_kernel(fd), "kept on");
  EXPECT_EQ(close_file(fd), 0);
}

TEST_F(Front, what_the_kernel_refuses_it_refuses_here) {
  const int fd = open_file("a.hold", O_WRONLY | O_CREAT);
  File* f = file_at(fd);
  char b[4];
  const std::pair<ssize_t, int> expected[] = {
      {-1, EBADF}, {-1, EFAULT}, {-1, EINVAL}, {-1, EINVAL}, {-1, EINVAL}};
  const auto got = [](ssize_t r) { return std::pair<ssize_t, int>{r, errno}; };
  EXPECT_EQ(got(read(f, fd, b, 4)), expected[0]);
  EXPECT_EQ(got(write(f, fd, nullptr, 4)), expected[1]);
  EXPECT_EQ(got(pwrite(f, fd, b, 4, -1)), expected[2]);
  EXPECT_EQ(got(lseek(f, fd, -1, SEEK_SET)), expected[3]);
  EXPECT_EQ(got(ftruncate(f, fd, -1)), expected[4]);
  EXPECT_EQ(write(f, fd, b, 0), 0);
  close_file(fd);
}

TEST_F(Front, memory_of_files_is_used_again_and_not_at_once) {
  int fd = open_file("a.hold");
  const File* const first = file_at(fd);
  int before_again = 0;
  for (; before_again < 100; ++before_again) {
    close_file(fd);
    fd = open_file("a.hold");
    if (file_at(fd) == first) break;
  }
  EXPECT_GE(before_again, 8);
  EXPECT_LT(before_again, 100);
  close_file(fd);
}

TEST_F(Front, a_pass_through_stack_leaves_position_and_bytes_to_the_kernel) {
  const int fd = open_file("a.pass");
  EXPECT_EQ(write_text(fd, "now"), 3);
  EXPECT_EQ(writes_seen, 1);
  EXPECT_EQ(in_kernel(fd), "now");
  EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 3);
  fails_with = EDQUOT;
  EXPECT_EQ(write_text(fd, "x"), -1);
  EXPECT_EQ(errno, EDQUOT);
  EXPECT_EQ(close_file(fd), 0);
}

// Reads, writes, seeks and cuts at random, against the same calls on a plain file.
TEST_F(Front, any_sequence_of_calls_gives_what_the_kernel_gives) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&](long below) {
    return static_cast<long>(random() % static_cast<unsigned long>(below));
  };
  const int fd = open_file("a.hold");
  const int plain = open((directory_ + "/plain").c_str(), O_RDWR | O_CREAT, 0644);
  File* f = file_at(fd);
  for (int i = 0; i < 20000; ++i) {
    char data[64], here[64] = {}, there[64] = {};
    memset(data, 'a' + i % 26, sizeof data);
    const size_t n = static_cast<size_t>(pick(40));
    const off_t at = pick(200);
    switch (pick(8)) {
      case 0: case 1: ASSERT_EQ(write(f, fd, data, n), ::write(plain, data, n)); break;
      case 2: ASSERT_EQ(pwrite(f, fd, data, n, at), ::pwrite(plain, data, n, at)); break;
      case 3: ASSERT_EQ(read(f, fd, here, n), ::read(plain, there, n)); break;
      case 4: ASSERT_EQ(pread(f, fd, here, n, at), ::pread(plain, there, n, at)); break;
      case 5: {
        const int whence = static_cast<int>(pick(3));
        const off_t by = pick(2) != 0 ? at : -at;
        ASSERT_EQ(lseek(f, fd, by, whence), ::lseek(plain, by, whence));
        break;
      }
      case 6:
        if (pick(20) == 0) {
          ASSERT_EQ(ftruncate(f, fd, at), ::ftruncate(plain, at));
        }
        break;
      case 7:
        if (pick(20) == 0) {
          ASSERT_EQ(flush(f, fd), 0);
        }
        break;
    }
    ASSERT_EQ(memcmp(here, there, sizeof here), 0) << "call " << i;
  }
  ASSERT_EQ(flush(f, fd), 0);
  EXPECT_EQ(in_kernel(fd), in_kernel(plain));
  close_file(fd);
  close(plain);
}

// A thread in the midst of making a file leave its layers, until the test lets it go on.
class Holder {
 public:
  explicit Holder(File* f) : thread_([this, f] {
    lock(f);
    f->left = true;
    has_ = true;
    while (!may_end_) usleep(100);
    f->left = false;
    ended_ = true;
    unlock(f);
  }) {
    while (!has_) usleep(100);
  }
  ~Holder() {
    let_go();
    thread_.join();
  }
  void let_go() { may_end_ = true; }
  bool ended() const { return ended_; }

 private:
  std::atomic<bool> has_{false}, may_end_{false}, ended_{false};
  std::thread thread_;
};

TEST_F(Front, a_forked_child_does_not_wait_for_a_thread_that_it_has_not) {
  const int fd = open_file("a.hold");
  File* const f = file_at(fd);
  Holder holder(f);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    in_forked_child();
    _exit(lseek(f, fd, 7, SEEK_SET) == 7 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  holder.let_go();
  close_file(fd);
}

TEST_F(Front, a_forked_child_finds_the_locks_of_all_tables_free) {
  EXPECT_GE(__stop_weir_busy - __start_weir_busy, 6);
  for (uint32_t** at = __start_weir_busy; at != __stop_weir_busy; ++at) base::store(*at, 1u);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    in_forked_child();
    const int fd = open_file("b.hold");
    _exit(fd >= 0 && close_file(fd) == 0 ? 0 : 1);
  }
  free_busy();
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Front, a_fork_waits_for_a_thread_that_makes_a_file_leave) {
  const int fd = open_file("a.hold");
  Holder holder(file_at(fd));
  std::thread later([&] {
    usleep(20000);
    holder.let_go();
  });
  before_fork();
  EXPECT_TRUE(holder.ended());
  after_fork_in_parent();
  later.join();
  close_file(fd);
}

}  // namespace
}  // namespace weir::stack
