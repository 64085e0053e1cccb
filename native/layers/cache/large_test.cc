// SPDX-License-Identifier: Apache-2.0
// Large calls: what no block holds goes between the file and the program in one request.
#include <vector>

#include "layers/cache/slots.h"
#include "layers/cache/ranks_test.h"

namespace weir::cache {
namespace {

constexpr uint32_t kBlock = 16384;

struct Large : CacheTest {
  // As many bytes of one value from the beginning of a block on.
  static bool put(Rank& t, char value, uint64_t offset, uint64_t bytes) {
    const std::vector<char> data(bytes, value);
    return cache::write(t.o, data.data(), bytes, offset) == static_cast<int64_t>(bytes);
  }
  static bool holds(Rank& t, char value, uint64_t offset, uint64_t bytes) {
    std::vector<char> data(bytes);
    const int64_t got = cache::read(t.o, data.data(), bytes, offset);
    return got == static_cast<int64_t>(bytes) && data == std::vector<char>(bytes, value);
  }
};

TEST_F(Large, whole_blocks_without_dirty_bytes_are_written_by_one_request) {
  for (const bool keeps : {true, false}) {
    const pid_t child = start([&] {
      Rank t{shared_, -1};
      const Policy policy{keeps, false, 1'000'000};
      if (ftruncate(fd_, 0) != 0 || !t.open(path_, {kBlock, 16}, 0, policy)) _exit(3);
      if (!put(t, 'a', 0, 5 * kBlock + 100)) _exit(4);
      if (shared_->writes != 1 || shared_->written_bytes != 5 * kBlock) _exit(5);
      if (shared_->counts[0][kPassedOn] != 1 || shared_->counts[0][kAccepted] != 1) _exit(6);
      if (!put(t, 'b', 100, 5 * kBlock)) _exit(7);  // the first block and the last are parts
      if (shared_->writes != 2 || shared_->written_bytes != 9 * kBlock) _exit(8);
      if (!holds(t, 'a', 0, 100) || !holds(t, 'b', 100, 5 * kBlock)) _exit(9);
      t.finish();
    });
    wait_for(child);
    std::vector<char> file(5 * kBlock + 100);
    ASSERT_EQ(static_cast<ssize_t>(file.size()), pread(fd_, file.data(), file.size(), 0));
    for (size_t i = 0; i < file.size(); ++i) ASSERT_EQ(i < 100 ? 'a' : 'b', file[i]) << i;
    memset(shared_, 0, sizeof *shared_);
  }
}

TEST_F(Large, a_block_with_dirty_bytes_takes_the_bytes_of_a_large_write) {
  const pid_t child = start([&] {
    Rank t{shared_, -1}, other{shared_, -1};
    if (!t.open(path_, {kBlock, 16}, 0) || !other.open(path_, {kBlock, 16}, 1)) _exit(3);
    if (!put(other, 'a', 3 * kBlock + 10, 10) || shared_->writes != 0) _exit(4);
    if (!put(t, 'b', 0, 8 * kBlock)) _exit(5);
    // three blocks, that one, four
    if (shared_->writes != 3 || shared_->counts[0][kAccepted] != 1) _exit(6);
    if (!holds(other, 'b', 0, 8 * kBlock)) _exit(7);
    t.finish();
    other.finish();
  });
  wait_for(child);
}

TEST_F(Large, blocks_that_are_kept_are_forgotten_after_a_large_write) {
  fill(8 * kBlock);
  const pid_t child = start([&] {
    Rank t{shared_, -1}, other{shared_, -1};
    if (!t.open(path_, {kBlock, 16}, 0) || !other.open(path_, {kBlock, 16}, 1)) _exit(3);
    std::vector<char> data(8 * kBlock);
    if (cache::read(other.o, data.data(), data.size(), 0) != 8 * kBlock) _exit(4);
    if (shared_->reads != 8) _exit(4);
    if (!put(t, 'b', kBlock, 6 * kBlock) || shared_->writes != 1) _exit(5);
    if (!holds(other, 'b', kBlock, 6 * kBlock) || shared_->reads != 8 + 6) _exit(6);
    t.finish();
    other.finish();
  });
  wait_for(child);
}

TEST_F(Large, a_write_that_is_cut_short_goes_on_behind_what_was_written) {
  const pid_t child = start([&] {
    Rank t{shared_, -1};
    if (!t.open(path_, {kBlock, 16}, 0)) _exit(3);
    const auto all = t.o.below.write;
    static decltype(t.o.below.write) whole;
    whole = all;
    t.o.below.write = [](void* context, const iovec* pieces, int, uint64_t bytes, uint64_t offset) {
      const uint64_t part = bytes > 3 ? bytes / 3 : bytes;
      const iovec first{pieces[0].iov_base, part < pieces[0].iov_len ? part : pieces[0].iov_len};
      return whole(context, &first, 1, first.iov_len, offset);
    };
    std::vector<char> data(8 * kBlock), got(8 * kBlock);
    for (size_t i = 0; i < data.size(); ++i) data[i] = byte_at(i);
    if (cache::write(t.o, data.data(), data.size(), 0) != 8 * kBlock) _exit(4);
    if (cache::read(t.o, got.data(), got.size(), 0) != 8 * kBlock || got != data) _exit(5);
    t.finish();
    if (pread(fd_, got.data(), got.size(), 0) != 8 * kBlock || got != data) _exit(6);
  });
  wait_for(child);
}

unsigned chance;
// The bytes in pieces of memory as a vectored call has them; now and then more than one request
// takes.
std::vector<iovec> in_parts(char* at, uint64_t bytes) {
  std::vector<iovec> parts;
  const uint64_t most = rand_r(&chance) % 2 == 0 ? bytes : 1 + bytes / (rand_r(&chance) % 200 + 1);
  for (uint64_t n; bytes > 0; at += n, bytes -= n) {
    n = 1 + rand_r(&chance) % most;
    if (n > bytes) n = bytes;
    parts.push_back({at, n});
  }
  return parts;
}
int64_t read_parts(Opening& o, char* to, uint64_t bytes, uint64_t offset) {
  const std::vector<iovec> parts = in_parts(to, bytes);
  return cache::read(o, parts.data(), static_cast<int>(parts.size()), bytes, offset);
}
int64_t write_parts(Opening& o, char* from, uint64_t bytes, uint64_t offset) {
  const std::vector<iovec> parts = in_parts(from, bytes);
  return cache::write(o, parts.data(), static_cast<int>(parts.size()), bytes, offset);
}
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
      Rank ranks[2]{{shared_, -1}, {shared_, -1}};
      if (ftruncate(fd_, 0) != 0) _exit(2);
      for (int i = 0; i < 2; ++i) {
        if (!ranks[i].open(path_, {8192, 8}, i, {keeps, false, 1'000'000, 1})) _exit(3);
        ranks[i].o.below.read = cut<Rank::read_file>;
        ranks[i].o.below.write = cut<Rank::write_file>;
      }
      std::vector<char> model, got(100'000);
      for (int n = 0; n < 4000; ++n) {
        Rank& t = ranks[rand_r(&chance) % 2];
        const unsigned most = rand_r(&chance) % 4 == 0 ? 100'000 : 300;
        const uint64_t at = rand_r(&chance) % 300'000, bytes = 1 + rand_r(&chance) % most;
        if (rand_r(&chance) % 3 == 0) {
          if (model.size() < at + bytes) model.resize(at + bytes);
          memset(model.data() + at, n, bytes);
          memset(got.data(), n, bytes);
          if (write_parts(t.o, got.data(), bytes, at) != static_cast<int64_t>(bytes)) _exit(4);
          continue;
        }
        const uint64_t end = at + bytes < model.size() ? at + bytes : model.size();
        const uint64_t there = end > at ? end - at : 0;
        uint64_t done = 0;
        while (done < bytes) {
          const int64_t more = read_parts(t.o, got.data() + done, bytes - done, at + done);
          if (more < 0) _exit(5);
          if (more == 0) break;
          done += static_cast<uint64_t>(more);
        }
        if (done != there) _exit(6);
        if (there > 0 && memcmp(got.data(), model.data() + at, there) != 0) _exit(7);
      }
      for (Rank& t : ranks) t.finish();
      std::vector<char> file(model.size() + 1);
      const ssize_t n = pread(fd_, file.data(), file.size(), 0);
      if (n != static_cast<ssize_t>(model.size())) _exit(8);
      if (memcmp(file.data(), model.data(), model.size()) != 0) _exit(9);
    });
    wait_for(child);
  }
}

TEST_F(Large, pieces_of_memory_are_one_request_as_far_as_one_takes_them) {
  const pid_t child = start([&] {
    Rank t{shared_, -1};
    if (!t.open(path_, {kBlock, 16}, 0, {false, false, 1'000'000})) _exit(3);
    std::vector<char> data(8 * kBlock, 'a');
    std::vector<iovec> parts;
    for (uint32_t i = 0; i < 16; ++i) parts.push_back({data.data() + i * kBlock / 2, kBlock / 2});
    if (cache::write(t.o, parts.data(), 16, 8 * kBlock, 0) != 8 * kBlock) _exit(4);
    if (shared_->writes != 1) _exit(5);
    if (cache::read(t.o, parts.data(), 16, 8 * kBlock, 0) != 8 * kBlock) _exit(6);
    if (shared_->reads != 1) _exit(7);
    parts.clear();  // 80, of two blocks and a part: each request ends with a whole block
    for (uint32_t i = 0; i < 80; ++i) parts.push_back({data.data() + i * 500, 500});
    if (cache::write(t.o, parts.data(), 80, 40'000, 0) != 40'000) _exit(8);
    if (shared_->writes != 3 || shared_->written_bytes != 10 * kBlock) _exit(9);
    t.finish();
    if (shared_->written_bytes != 8 * kBlock + 40'000) _exit(10);
  });
  wait_for(child);
}

TEST_F(Large, a_read_that_keeps_nothing_makes_one_request_beside_what_is_dirty) {
  fill(8 * kBlock);
  const pid_t child = start([&] {
    Rank t{shared_, -1};
    if (!t.open(path_, {kBlock, 16}, 0, {false, false, 1'000'000})) _exit(3);
    std::vector<char> data(8 * kBlock), model(8 * kBlock);
    for (size_t i = 0; i < model.size(); ++i) model[i] = byte_at(i);
    if (cache::read(t.o, data.data(), data.size(), 0) != 8 * kBlock || data != model) _exit(4);
    if (shared_->reads != 1) _exit(4);
    if (cache::read(t.o, data.data(), 3 * kBlock, 100) != 3 * kBlock) _exit(5);
    if (shared_->reads != 2) _exit(5);
    if (!put(t, 'b', 3 * kBlock + 10, 10)) _exit(6);
    memset(model.data() + 3 * kBlock + 10, 'b', 10);
    if (cache::read(t.o, data.data(), data.size(), 0) != 8 * kBlock || data != model) _exit(7);
    if (shared_->reads != 2 + 3) _exit(8);  // what is before that block, it, what follows
    if (cache::read(t.o, data.data(), data.size(), 4 * kBlock) != 4 * kBlock) _exit(9);
    if (shared_->reads != 6) _exit(10);  // the file ends there
    t.finish();
  });
  wait_for(child);
}

TEST_F(Large, a_read_past_what_the_file_has_gets_zeros_up_to_accepted_bytes) {
  fill(kBlock + 100);
  const pid_t child = start([&] {
    Rank t{shared_, -1};
    if (!t.open(path_, {kBlock, 16}, 0, {false, false, 1'000'000})) _exit(3);
    if (!put(t, 'b', 6 * kBlock + 10, 10)) _exit(4);
    std::vector<char> data(8 * kBlock, 'x'), model(6 * kBlock + 20);
    for (size_t i = 0; i < kBlock + 100; ++i) model[i] = byte_at(i);
    memset(model.data() + 6 * kBlock + 10, 'b', 10);
    if (cache::read(t.o, data.data(), data.size(), 0) != 6 * kBlock + 20) _exit(5);
    data.resize(model.size());
    if (data != model) _exit(6);
    t.finish();
  });
  wait_for(child);
}

}  // namespace
}  // namespace weir::cache
