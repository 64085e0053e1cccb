// SPDX-License-Identifier: Apache-2.0
// Large calls: what no block holds goes between the file and the program in one request.
#include <vector>

#include "cache/slots.h"
#include "cache/tasks_test.h"

namespace weir::cache {
namespace {

constexpr uint32_t kBlock = 16384;

struct Large : CacheTest {
  // As many bytes of one value from the beginning of a block on.
  static bool put(Task& t, char value, uint64_t offset, uint64_t bytes) {
    const std::vector<char> data(bytes, value);
    return cache::write(t.o, data.data(), bytes, offset) == static_cast<int64_t>(bytes);
  }
  static bool holds(Task& t, char value, uint64_t offset, uint64_t bytes) {
    std::vector<char> data(bytes);
    const int64_t got = cache::read(t.o, data.data(), bytes, offset);
    return got == static_cast<int64_t>(bytes) && data == std::vector<char>(bytes, value);
  }
};

unsigned chance;
// As a file system that moves fewer bytes than asked for, one time of three.
template <auto move>
int64_t cut(void* context, const iovec* pieces, int count, uint64_t bytes, uint64_t offset) {
  if (rand_r(&chance) % 3 != 0) return move(context, pieces, count, bytes, offset);
  const iovec first{pieces[0].iov_base, 1 + rand_r(&chance) % pieces[0].iov_len};
  return move(context, &first, 1, first.iov_len, offset);
}

TEST_F(Large, short_answers_change_no_byte) {
  chance = 7;
  for (const bool keeps : {true, false}) {
    const pid_t child = start([&] {
      Task tasks[2]{{shared_, -1}, {shared_, -1}};
      if (ftruncate(fd_, 0) != 0) _exit(2);
      for (int i = 0; i < 2; ++i) {
        if (!tasks[i].open(path_, {8192, 8}, i, {keeps, false, 1'000'000, 1})) _exit(3);
        tasks[i].o.below.read = cut<Task::read_file>;
        tasks[i].o.below.write = cut<Task::write_file>;
      }
      std::vector<char> model, got(100'000);
      for (int n = 0; n < 4000; ++n) {
        Task& t = tasks[rand_r(&chance) % 2];
        const unsigned most = rand_r(&chance) % 4 == 0 ? 100'000 : 300;
        const uint64_t at = rand_r(&chance) % 300'000, bytes = 1 + rand_r(&chance) % most;
        if (rand_r(&chance) % 3 == 0) {
          if (model.size() < at + bytes) model.resize(at + bytes);
          memset(model.data() + at, n, bytes);
          memset(got.data(), n, bytes);
          if (cache::write(t.o, got.data(), bytes, at) != static_cast<int64_t>(bytes)) _exit(4);
          continue;
        }
        const uint64_t end = at + bytes < model.size() ? at + bytes : model.size();
        const uint64_t there = end > at ? end - at : 0;
        uint64_t done = 0;
        while (done < bytes) {
          const int64_t more = cache::read(t.o, got.data() + done, bytes - done, at + done);
          if (more < 0) _exit(5);
          if (more == 0) break;
          done += static_cast<uint64_t>(more);
        }
        if (done != there) _exit(6);
        if (there > 0 && memcmp(got.data(), model.data() + at, there) != 0) _exit(7);
      }
      for (Task& t : tasks) t.finish();
      std::vector<char> file(model.size() + 1);
      const ssize_t n = pread(fd_, file.data(), file.size(), 0);
      if (n != static_cast<ssize_t>(model.size())) _exit(8);
      if (memcmp(file.data(), model.data(), model.size()) != 0) _exit(9);
    });
    wait_for(child);
  }
}

}  // namespace
}  // namespace weir::cache
