// SPDX-License-Identifier: Apache-2.0
// What the cache's tests share: a file, counters that all processes have, and a rank's opening of
// that file.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "layers/cache/cache.h"
#include "layers/writeback/client.h"
#include "base/syscall.h"

namespace weir::cache {

struct Shared {
  uint32_t reads, first_reads, writes, arrived, wrong, go;
  uint64_t read_bytes, written_bytes;
  uint64_t counts[64][kStatistics];
};

// A file, counters that all processes share, and a job of its own.
class CacheTest : public ::testing::Test {
 public:
  static char byte_at(uint64_t offset) {
    return static_cast<char>(offset * 7 + offset / 251 + offset / 65537);
  }

 protected:
  void SetUp() override {
    shared_ = static_cast<Shared*>(
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    snprintf(path_, sizeof path_, "%s/weir-cache-XXXXXX", testing::TempDir().c_str());
    fd_ = mkstemp(path_);
    char job[64];
    static int number = 0;
    snprintf(job, sizeof job, "cache-test-%d-%d", getpid(), ++number);
    setenv("WEIR_JOB", job, 1);
    unsetenv("WEIR_NODE_RANKS");
    writeback::use_daemon(WEIR_DRAIN_PROGRAM);
  }
  void TearDown() override {
    munmap(shared_, sizeof(Shared));
    ::close(fd_);
    unlink(path_);
    char command[256];
    snprintf(command, sizeof command, "rm -rf /dev/shm/weir.%d.%s", static_cast<int>(geteuid()),
             getenv("WEIR_JOB"));
    EXPECT_EQ(0, system(command));
  }
  void fill(uint64_t bytes) {
    std::vector<char> data(bytes);
    for (uint64_t i = 0; i < bytes; ++i) data[i] = byte_at(i);
    ASSERT_EQ(static_cast<ssize_t>(bytes), pwrite(fd_, data.data(), bytes, 0));
    const timespec old[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    futimens(fd_, old);
    usleep(120'000);  // its change is no longer so recent that it could change again without a sign
  }
  template <typename Body>
  pid_t start(Body body) {
    const pid_t child = fork();
    if (child == 0) {
      body();
      _exit(0);
    }
    return child;
  }
  void wait_for(pid_t child, int status_wanted = 0) {
    int status = -1;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(status_wanted, status);
  }

  Shared* shared_;
  char path_[128];
  int fd_;
};

// One rank's opening of the file.
struct Rank {
  Shared* shared;
  int fd;
  Opening o{};
  void (*before_read)(Rank&, uint64_t offset) = nullptr;
  void (*before_write)(Rank&) = nullptr;
  void (*after_write)(Rank&) = nullptr;
  Rank* writes_meanwhile = nullptr;  // this one writes the file between the stamp and its use
  int fail_writes = 0;
  uint64_t lost = 0;

  static int64_t read_file(void* context, const iovec* pieces, int count, uint64_t bytes,
                           uint64_t offset) {
    auto& t = *static_cast<Rank*>(context);
    base::fetch_add(&t.shared->reads, 1u);
    base::fetch_add(&t.shared->read_bytes, bytes);
    if (offset == 0) base::fetch_add(&t.shared->first_reads, 1u);
    if (t.before_read != nullptr) t.before_read(t, offset);
    const ssize_t n = preadv(t.fd, pieces, count, static_cast<off_t>(offset));
    return n < 0 ? -errno : n;
  }
  static int64_t write_file(void* context, const iovec* pieces, int count, uint64_t bytes,
                            uint64_t offset) {
    auto& t = *static_cast<Rank*>(context);
    base::fetch_add(&t.shared->writes, 1u);
    if (t.fail_writes != 0) return -t.fail_writes;
    if (t.before_write != nullptr) t.before_write(t);
    base::fetch_add(&t.shared->written_bytes, bytes);
    const ssize_t n = pwritev(t.fd, pieces, count, static_cast<off_t>(offset));
    if (t.after_write != nullptr) t.after_write(t);
    return n < 0 ? -errno : n;
  }
  static bool about(void* context, Stamp* to) {
    struct stat s;
    if (fstat(static_cast<Rank*>(context)->fd, &s) != 0) return false;
    *to = {static_cast<uint64_t>(s.st_size), s.st_mtim.tv_sec, s.st_ctim.tv_sec,
           static_cast<uint32_t>(s.st_mtim.tv_nsec), static_cast<uint32_t>(s.st_ctim.tv_nsec)};
    if (Rank* const other = static_cast<Rank*>(context)->writes_meanwhile; other != nullptr) {
      pthread_t writer;
      pthread_create(&writer, nullptr, write_and_flush, other);
      pthread_join(writer, nullptr);
    }
    return true;
  }
  static void* write_and_flush(void* rank) {
    auto& t = *static_cast<Rank*>(rank);
    if (cache::write(t.o, "bytes", 5, 0) != 5 || flush(t.o, false) != 0) _exit(9);
    return nullptr;
  }
  static void lost_bytes(void* context, int, uint64_t bytes) {
    static_cast<Rank*>(context)->lost += bytes;
  }

  bool open(const char* path, Shape shape, int number, Policy policy = {true, false, 1'000'000}) {
    fd = ::open(path, O_RDWR);
    struct stat s;
    fstat(fd, &s);
    o.below = {this, read_file, write_file, about, lost_bytes, &fd, path, true, true};
    o.policy = policy;
    o.counts = shared->counts[number];
    o.cache = attach(shape);
    return o.cache != nullptr && cache::open(o, s.st_dev, s.st_ino) == 0;
  }
  void finish() {
    flush(o, true);
    cache::close(o);
    ::close(fd);
  }
};

inline void meet(Shared* shared, uint32_t all) {
  base::fetch_add(&shared->arrived, 1u);
  while (base::load(&shared->arrived) < all) usleep(200);
}

}  // namespace weir::cache
