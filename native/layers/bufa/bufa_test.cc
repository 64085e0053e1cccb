// SPDX-License-Identifier: Apache-2.0
// What reaches the file below bufa: counted.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "layers/writeback/client.h"
#include "layers/bufa/fake_test.h"

namespace weir::layers::bufa::test {
namespace {

constexpr uint64_t kMiB = 1 << 20;

char expected_at(uint64_t offset) { return static_cast<char>((offset * 2654435761u) >> 13); }

class Bufa : public ::testing::Test {
 protected:
  Bufa() {
    below = &below_;
    below_.random.seed(1);
    has_daemon = true;
  }
  void fill(uint64_t bytes) {
    below_.bytes.resize(bytes);
    for (uint64_t i = 0; i < bytes; ++i) below_.bytes[i] = expected_at(i);
  }
  void read_and_check(Opened& file, uint64_t offset, uint64_t bytes) {
    std::vector<char> got(bytes);
    ASSERT_EQ(file.read(got.data(), bytes, offset), static_cast<Result>(bytes));
    for (uint64_t i = 0; i < bytes; ++i) ASSERT_EQ(got[i], expected_at(offset + i)) << offset + i;
  }
  void write_expected(Opened& file, uint64_t offset, uint64_t bytes) {
    std::vector<char> data(bytes);
    for (uint64_t i = 0; i < bytes; ++i) data[i] = expected_at(offset + i);
    ASSERT_EQ(file.write(data.data(), bytes, offset), static_cast<Result>(bytes));
  }
  void expect_written(uint64_t bytes) {
    ASSERT_EQ(below_.bytes.size(), bytes);
    for (uint64_t i = 0; i < bytes; ++i) ASSERT_EQ(below_.bytes[i], expected_at(i)) << i;
  }
  Below below_;
};

TEST_F(Bufa, NothingIsKeptOfAFileThatAnotherHasTaken) {
  fill(kMiB);
  Opened file(64 << 10, 4, true);
  taken_away = true;
  for (uint64_t at = 0; at < kMiB / 2; at += 1024) {
    read_and_check(file, at, 1024);
    write_expected(file, at, 512);
  }
  EXPECT_EQ(below_.reads, 512u);
  EXPECT_EQ(below_.writes, 512u);
  EXPECT_EQ(noted.left, stack::Reason::kConflict);
}

TEST_F(Bufa, SequentialReadAsksForWholeBlocksAndSeveralAtOnce) {
  fill(16 * kMiB);
  below_.steady_delay_us = 1000;  // as a file system far away: from the second request on
  {
    Opened file(kMiB, 8, false);
    for (uint64_t at = 0; at < 16 * kMiB; at += 1024) read_and_check(file, at, 1024);
    EXPECT_GT(file.statistic(kHits), 16'300u);
  }
  EXPECT_LE(below_.reads, 16u + 6);
  EXPECT_LE(below_.bytes_read, 16 * kMiB + 2048);
  EXPECT_GE(below_.most_under_way, 2u);
}

// As a Fortran program that rewinds: 48 blocks of 4 KiB with each request, two buffers.
TEST_F(Bufa, EveryPassOverAFileAsksForWholeBlocks) {
  fill(16 * kMiB);
  below_.steady_delay_us = 500;
  {
    Opened file(kMiB, 2, false);
    for (int pass = 0; pass < 3; ++pass) {
      for (uint64_t at = 0; at < 16 * kMiB; at += 48 * 4096) {
        read_and_check(file, at, std::min(uint64_t{48 * 4096}, 16 * kMiB - at));
      }
    }
  }
  EXPECT_LE(below_.reads, 3 * (16u + 4));
}

TEST_F(Bufa, ShortReadOfALargeFileFetchesLittle) {
  fill(8 * kMiB);
  below_.steady_delay_us = 500;
  {
    Opened file(kMiB, 8, false);
    for (uint64_t at = 0; at < 4096; at += 512) read_and_check(file, at, 512);
  }
  EXPECT_LE(below_.bytes_read, 20u << 10);
}

TEST_F(Bufa, StridedReadAsksForPagesAndManyAtOnce) {
  for (const uint64_t stride : {uint64_t{64} << 10, kMiB}) {
    below_.log.clear();
    below_.bytes_read = below_.most_under_way = 0;
    fill(100 * stride);
    below_.steady_delay_us = 5000;
    {
      Opened file(kMiB, 2, false);
      for (uint64_t i = 0; i < 100; ++i) read_and_check(file, i * stride, 1024);
    }
    EXPECT_LE(below_.bytes_read, 100u * 4096) << stride;
    EXPECT_GE(below_.most_under_way, 5u) << stride;  // its own, and 4 ahead
  }
}

// Equal distances for a while, then again from near the beginning: what was asked for ahead of the
// last one is in vain.
TEST_F(Bufa, StridedReadThatWrapsMakesFewMoreRequestsThanTheProgram) {
  constexpr uint64_t kStep = 64 << 10;
  fill(600 * kStep);
  for (const uint64_t run :
       {uint64_t{5}, uint64_t{6}, uint64_t{20}, uint64_t{100}, uint64_t{300}}) {
    const uint64_t runs = 1000 / run;
    below_.reads = 0;
    {
      Opened file(kMiB, 8, true);
      for (uint64_t i = 0; i < runs * run; ++i)
        read_and_check(file, i / run * 4096 % kStep + i % run * kStep, 1024);
    }
    EXPECT_LE(below_.reads, runs * run + runs * run / 20) << run;
    printf("runs of %d: %d reads below for %d\n", static_cast<int>(run),
           static_cast<int>(below_.reads), static_cast<int>(runs * run));
  }
}

// As one rank of several reads its pieces of an interleaved file, which goes on behind them.
TEST_F(Bufa, StridedReadThatEndsAnywhereMakesAtMostFourRequestsInVain) {
  constexpr uint64_t kStep = 64 << 10;
  fill(600 * kStep);
  for (const uint64_t run : {uint64_t{4}, uint64_t{5}, uint64_t{8}, uint64_t{64}, uint64_t{99}}) {
    below_.reads = 0;
    {
      Opened file(kMiB, 8, true);
      for (uint64_t i = 0; i < run; ++i) read_and_check(file, i * kStep, 4096);
    }
    EXPECT_LE(below_.reads, run + 4) << run;
  }
}

TEST_F(Bufa, StridedReadOfAnyLengthsWastesNoMoreThanItsShare) {
  constexpr uint64_t kStep = 64 << 10;
  fill(600 * kStep);
  std::mt19937 random(5);
  uint64_t asked = 0;
  {
    Opened file(kMiB, 8, true);
    while (asked < 4000) {
      const uint64_t length = 4 + random() % 120,
                     begin = random() % 400 * kStep + random() % 15 * 4096;
      for (uint64_t i = 0; i < length; ++i) read_and_check(file, begin + i * kStep, 1024);
      asked += length;
    }
  }
  printf("%d reads below for %d\n", static_cast<int>(below_.reads), static_cast<int>(asked));
  EXPECT_LE(below_.reads, asked + asked / 20);
}

TEST_F(Bufa, BackwardReadAsksForBlocks) {
  fill(8 * kMiB);
  below_.steady_delay_us = 500;
  {
    Opened file(kMiB, 4, false);
    for (uint64_t at = 8 * kMiB; at > 0; at -= 1024) read_and_check(file, at - 1024, 1024);
  }
  EXPECT_LE(below_.reads, 8u + 8);
}

// As one rank of several reads its part of a file that goes on behind it.
TEST_F(Bufa, AStreamThatEndsAnywhereReadsAtMostTwiceItsBytes) {
  fill(16 * kMiB);
  for (const bool backward : {false, true}) {
    for (const uint64_t piece : {uint64_t{8}, uint64_t{256}, uint64_t{4096}, uint64_t{65536}}) {
      for (const uint64_t count : {uint64_t{3}, uint64_t{20}, uint64_t{64}, uint64_t{100}}) {
        below_.reads = below_.bytes_read = 0;
        const uint64_t begin = 8 * kMiB;
        {
          Opened file(kMiB, 8, true);
          for (uint64_t i = 0; i < count; ++i)
            read_and_check(file, backward ? begin - (i + 1) * piece : begin + i * piece, piece);
        }
        EXPECT_LE(below_.bytes_read, 2 * count * piece + (64 << 10)) << count << " of " << piece;
        EXPECT_LE(below_.reads, count) << count << " of " << piece;
      }
    }
  }
}

TEST_F(Bufa, GapsOfUpToAPageAreReadAndLargerOnesAreNot) {
  constexpr uint64_t kPiece = 256, kCount = 512;
  fill(16 * kMiB);
  for (const uint64_t step :
       {uint64_t{512}, uint64_t{2048}, uint64_t{4096}, uint64_t{8192}, uint64_t{16384}}) {
    for (const bool backward : {false, true}) {
      below_.reads = below_.bytes_read = 0;
      {
        Opened file(kMiB, 8, true);
        for (uint64_t i = 0; i < kCount; ++i)
          read_and_check(file, backward ? 12 * kMiB - i * step : 4 * kMiB + i * step, kPiece);
      }
      const bool is_read = step <= 4096;
      EXPECT_LE(below_.bytes_read,
                (is_read ? kCount * step : kCount * kPiece) + kCount * kPiece + (64 << 10))
          << step;
      EXPECT_LE(below_.reads, is_read ? 40 : kCount + kCount / 20) << step;
    }
  }
}

// A few pieces that follow one another, here and there in the file.
TEST_F(Bufa, ShortStreamsAllOverTheFileReadLittleInVain) {
  constexpr uint64_t kPiece = 256;
  fill(64 * kMiB);
  for (const uint64_t length : {2, 3, 6}) {
    below_.reads = below_.bytes_read = 0;
    std::mt19937_64 random(11);
    uint64_t calls = 0;
    {
      Opened file(kMiB, 8, true);
      for (int i = 0; i < 300; ++i) {
        const uint64_t begin = random() % (60 * kMiB);
        for (uint64_t k = 0; k < length; ++k, ++calls)
          read_and_check(file, begin + k * kPiece, kPiece);
      }
    }
    EXPECT_LE(below_.reads, calls + 4) << length;
    EXPECT_LE(below_.bytes_read, 2 * calls * kPiece + (64 << 10)) << length;
  }
}

TEST_F(Bufa, AfterBytesReadInVainALongStreamIsReadAheadAgain) {
  fill(64 * kMiB);
  std::mt19937_64 random(11);
  Opened file(kMiB, 8, true);
  for (int i = 0; i < 300; ++i) {
    const uint64_t begin = random() % (60 * kMiB);
    for (uint64_t k = 0; k < 2; ++k) read_and_check(file, begin + k * 256, 256);
  }
  below_.reads = 0;
  for (uint64_t at = 0; at < 8 * kMiB; at += 4096) read_and_check(file, at, 4096);
  EXPECT_LE(below_.reads, 200u);
}

TEST_F(Bufa, RandomReadsAreNotAmplified) {
  fill(8 * kMiB);
  below_.steady_delay_us = 200;
  {
    Opened file(kMiB, 4, false);
    std::mt19937_64 random(7);
    for (int i = 0; i < 300; ++i) read_and_check(file, random() % (8 * kMiB - 100), 100);
  }
  EXPECT_LE(below_.reads, 305u);
  EXPECT_LE(below_.bytes_read, 64u << 10);
}

TEST_F(Bufa, FourInterleavedStreamsAreReadAhead) {
  fill(16 * kMiB);
  below_.steady_delay_us = 200;
  for (const uint64_t buffers : {2, 16}) {
    below_.reads = below_.bytes_read = 0;
    {
      Opened file(kMiB, buffers, false);
      for (uint64_t at = 0; at < 2 * kMiB; at += 512) {
        for (uint64_t stream = 0; stream < 4; ++stream)
          read_and_check(file, stream * 4 * kMiB + at, 512);
      }
    }
    EXPECT_LE(below_.reads, buffers == 16 ? 60u : 2000u) << buffers;
    EXPECT_LE(below_.bytes_read, 17 * kMiB) << buffers;
  }
}

TEST_F(Bufa, SmallWritesBecomeBlocks) {
  {
    Opened file(kMiB, 8, true, O_WRONLY);
    for (uint64_t at = 0; at < 4 * kMiB; at += 64) write_expected(file, at, 64);
    EXPECT_EQ(file.size(), static_cast<Result>(4 * kMiB));
  }
  EXPECT_LE(below_.writes, 5u);
  EXPECT_EQ(below_.largest, kMiB);
  expect_written(4 * kMiB);
}

TEST_F(Bufa, BackwardAndInterleavedWritesMerge) {
  {
    Opened file(65536, 8, true, O_WRONLY);
    for (uint64_t at = 256 << 10; at > 128 << 10; at -= 128) write_expected(file, at - 128, 128);
    for (uint64_t at = 0; at < 64 << 10; at += 128) {
      write_expected(file, at, 128);
      write_expected(file, (64 << 10) + at, 128);
    }
  }
  EXPECT_LE(below_.writes, 5u);
  expect_written(256 << 10);
}

TEST_F(Bufa, BytesThatTheProgramDidNotWriteAreNotWritten) {
  fill(65536);
  below_.bytes_written = 0;
  {
    Opened file(65536, 4, true);
    for (uint64_t at = 0; at < 65536; at += 8192) write_expected(file, at + 100, 50);
    const std::lock_guard hold(below_.lock);
    // Another node writes the neighbours meanwhile.
    for (uint64_t at = 0; at < 65536; at += 8192)
      below_.bytes[at + 99] = below_.bytes[at + 150] = 'n';
  }
  EXPECT_EQ(below_.bytes_written, 8u * 50);
  for (uint64_t at = 0; at < 65536; at += 8192) {
    ASSERT_EQ(below_.bytes[at + 99], 'n');
    ASSERT_EQ(below_.bytes[at + 150], 'n');
  }
}

TEST_F(Bufa, OldBlocksAreWrittenWhileTheProgramDoesNothing) {
  Opened file(65536, 4, true, O_WRONLY);
  write_expected(file, 0, 100);
  for (int i = 0; i < 6000; ++i) {
    usleep(10'000);
    const std::lock_guard hold(below_.lock);
    if (below_.bytes.size() == 100) break;
  }
  const std::lock_guard hold(below_.lock);
  ASSERT_EQ(below_.bytes.size(), 100u);
}

TEST_F(Bufa, ABlockThatFailedOnceIsWrittenAtFlush) {
  {
    Opened file(65536, 4, true, O_WRONLY);
    below_.errors_left = 1;
    write_expected(file, 0, 100);
    EXPECT_EQ(file.flush(), 0);
    EXPECT_EQ(noted.errors, 0);
    EXPECT_EQ(file.statistic(kRetries), 1u);
  }
  expect_written(100);
}

TEST_F(Bufa, ABlockThatFailsTwiceIsReportedOnceWithItsBytes) {
  Opened file(65536, 4, true, O_WRONLY);
  below_.errors_left = 2;
  write_expected(file, 0, 100);
  write_expected(file, 1000, 50);
  file.flush();
  EXPECT_EQ(noted.errors, 1);
  EXPECT_EQ(noted.error, ENOSPC);
  EXPECT_EQ(noted.lost_bytes, 150u);
  file.flush();
  EXPECT_EQ(noted.errors, 1);
}

TEST_F(Bufa, BytesBehindAFailedAppendDoNotOvertakeIt) {
  {
    Opened file(4096, 8, true, O_WRONLY | O_APPEND);
    below_.steady_delay_us = 2000;
    below_.errors_left = 1;
    for (uint64_t at = 0; at < 8 * 4096; at += 64) {
      std::vector<char> data(64);
      for (uint64_t i = 0; i < 64; ++i) data[i] = expected_at(at + i);
      ASSERT_EQ(file.append(data.data(), 64), 64);
    }
  }
  EXPECT_EQ(noted.errors, 0);
  expect_written(8 * 4096);
}

TEST_F(Bufa, WithoutAHelperWritesGoThrough) {
  has_daemon = false;
  writeback::ensure();
  {
    Opened file(65536, 4, true, O_WRONLY);
    for (uint64_t at = 0; at < 1024; at += 64) write_expected(file, at, 64);
    EXPECT_EQ(below_.writes, 16u);
    EXPECT_EQ(noted.bypass, stack::Reason::kNoDaemon);
  }
  has_daemon = true;
  writeback::ensure();
  expect_written(1024);
}

TEST_F(Bufa, LargeRequestsPassStraightThroughAndSeeWhatIsDirty) {
  fill(4 * kMiB);
  Opened file(kMiB, 4, true);
  const char x = 'x';
  ASSERT_EQ(file.write(&x, 1, 700'000), 1);
  below_.reads = 0;
  std::vector<char> got(2 * kMiB);
  ASSERT_EQ(file.read(got.data(), got.size(), 0), static_cast<Result>(got.size()));
  EXPECT_EQ(got[700'000], 'x');
  EXPECT_EQ(got[700'001], expected_at(700'001));
  EXPECT_EQ(below_.reads, 1u);
}

TEST_F(Bufa, WhatTheKernelHasInMemoryIsLeftToItWhenRead) {
  fill(kMiB);
  Opened file(kMiB, 4, false, O_RDONLY);
  std::mt19937_64 random(3);
  for (int i = 0; i < 100; ++i) read_and_check(file, random() % (kMiB - 100), 100);
  EXPECT_EQ(noted.left, stack::Reason::kRandom);
}

// Each has a part of the file for itself; all share buffers, streams and the flush timer of blocks.
TEST_F(Bufa, ThreadsReadAndWriteOneFileSideBySide) {
  constexpr uint64_t kPart = 256 << 10, kThreads = 4;
  fill(kThreads * kPart);
  below_.delay_us = 50;
  {
    Opened file(16384, 6, true);
    std::vector<std::thread> threads;
    std::array<int, kThreads> wrong{};
    for (uint64_t me = 0; me < kThreads; ++me) {
      threads.emplace_back([&, me] {
        std::mt19937_64 random(me);
        std::vector<char> b(40'000);
        for (uint64_t at = 0; at < kPart;) {
          const uint64_t n = std::min(1 + random() % (random() % 8 == 0 ? b.size() : 700),
                                      kPart - at),
                         offset = me * kPart + at;
          wrong[me] += file.read(b.data(), n, offset) != static_cast<Result>(n);
          for (uint64_t i = 0; i < n; ++i) wrong[me] += b[i] != expected_at(offset + i);
          for (uint64_t i = 0; i < n; ++i) b[i] = static_cast<char>(~b[i]);
          wrong[me] += file.write(b.data(), n, offset) != static_cast<Result>(n);
          at += n;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    for (const int count : wrong) EXPECT_EQ(count, 0);
  }
  ASSERT_EQ(below_.bytes.size(), kThreads * kPart);
  for (uint64_t i = 0; i < below_.bytes.size(); ++i)
    ASSERT_EQ(below_.bytes[i], static_cast<char>(~expected_at(i))) << i;
}

}  // namespace
}  // namespace weir::layers::bufa::test
