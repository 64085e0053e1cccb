// SPDX-License-Identifier: Apache-2.0
#include "base/apart.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/syscall.h"
#include "base/thread.h"

namespace weir::base {
namespace {

constexpr int kFiles = 8;
constinit uint32_t opened = 0, closed = 0, over = 0;
constinit int mine[kFiles] = {};

void wait_for(const uint32_t* word) {
  while (load(word) == 0) yield();
}

// The program: closes every number while weir has a file open, then opens files of its own.
void* close_all_and_open(void*) {
  wait_for(&opened);
  system_call(SYS_close_range, 3, ~0u, 0);
  for (int& fd : mine) fd = open("victim", O_RDWR);
  store(&closed, 1u);
  wait_for(&over);
  return nullptr;
}

void make(const char* name, uint64_t bytes) {
  const int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  ASSERT_EQ(ftruncate(fd, static_cast<off_t>(bytes)), 0);
  close(fd);
}

uint64_t size_of(const char* name) {
  struct stat about {};
  EXPECT_EQ(stat(name, &about), 0);
  return static_cast<uint64_t>(about.st_size);
}

void begin_closer(pthread_t* thread) {
  opened = closed = over = 0;
  make("victim", 100);
  make("own", 0);
  ASSERT_EQ(pthread_create(thread, nullptr, close_all_and_open, nullptr), 0);
}

void end_closer(pthread_t thread) {
  store(&over, 1u);
  pthread_join(thread, nullptr);
  for (const int fd : mine) {
    EXPECT_GE(fcntl(fd, F_GETFD), 0) << "one of the program's was closed";
    close(fd);
  }
}

TEST(Apart, a_program_that_closes_every_number_reaches_no_descriptor_of_the_body) {
  for (const Table table : {Table::empty, Table::copied}) {
    pthread_t closer;
    begin_closer(&closer);
    long grown = -1, is_closed = -1;
    ASSERT_TRUE(apart([&] {
      const int fd = static_cast<int>(open_at(AT_FDCWD, "own", O_RDWR | O_CLOEXEC));
      store(&opened, 1u);
      wait_for(&closed);
      grown = resize(fd, 5000);
      is_closed = close_fd(fd);
    }, table));
    end_closer(closer);
    EXPECT_EQ(grown, 0);
    EXPECT_EQ(is_closed, 0);
    EXPECT_EQ(size_of("own"), 5000u);
    EXPECT_EQ(size_of("victim"), 100u);
  }
}

TEST(Apart, the_body_has_the_program_s_descriptors_or_none) {
  pthread_t other;
  begin_closer(&other);
  const int fd = open("own", O_RDWR);
  long empty = 0, copied = 0, number = -1;
  ASSERT_TRUE(apart([&] {
    empty = system_call(SYS_fcntl, fd, F_GETFD);
    number = open_at(AT_FDCWD, "own", O_RDONLY);
    close_fd(static_cast<int>(number));
  }));
  ASSERT_TRUE(apart([&] { copied = system_call(SYS_fcntl, fd, F_GETFD); }, Table::copied));
  EXPECT_EQ(empty, -EBADF);
  EXPECT_EQ(number, 0);
  EXPECT_EQ(copied, 0);
  EXPECT_GE(fcntl(fd, F_GETFD), 0) << "the program's is open";
  store(&opened, 1u);
  end_closer(other);
}

TEST(Apart, nothing_of_a_copy_is_open_afterwards) {
  signal(SIGPIPE, SIG_IGN);
  pthread_t other;
  begin_closer(&other);
  for (int i = 0; i < 300; ++i) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_TRUE(apart([] {}, Table::copied));
    close(ends[0]);
    EXPECT_EQ(write(ends[1], "x", 1), -1) << "somebody has the end to read from";
    close(ends[1]);
  }
  store(&opened, 1u);
  end_closer(other);
}

TEST(Apart, a_thread_that_is_alone_does_it_in_place) {
  int thread = 0;
  ASSERT_TRUE(apart([&] { thread = thread_id(); }));
  EXPECT_EQ(thread, thread_id());
}

TEST(Apart, within_another_it_is_done_in_place) {
  pthread_t other;
  begin_closer(&other);
  int outer = 0, inner = 0;
  ASSERT_TRUE(apart([&] {
    outer = thread_id();
    apart([&] { inner = thread_id(); });
  }));
  EXPECT_NE(outer, thread_id());
  EXPECT_EQ(outer, inner);
  store(&opened, 1u);
  end_closer(other);
}

}  // namespace
}  // namespace weir::base
