// SPDX-License-Identifier: Apache-2.0
// bufa against a plain array of bytes: whatever the sequence of calls, the answers and the file are
// the same.
#include <gtest/gtest.h>

#include "layers/bufa/fake_test.h"

namespace weir::layers::bufa::test {
namespace {

struct Setting {
  uint64_t block_bytes, buffers;
  bool always, append;
  unsigned delay_us;
  double short_rate;
  int operations;
};

class Walk {
 public:
  Walk(const Setting& setting, uint64_t seed) : setting_(setting), random_(seed) {
    below_.random.seed(seed + 1);
    below_.delay_us = setting.delay_us;
    below_.short_rate = setting.short_rate;
    below_.bytes.resize(random_() % 400'000);
    for (char& c : below_.bytes) c = static_cast<char>(random_());
    model_ = below_.bytes;
    below = &below_;
  }

  void go() {
    {
      Opened file(setting_.block_bytes, setting_.buffers, setting_.always,
                  setting_.append ? O_RDWR | O_APPEND : O_RDWR);
      for (int i = 0; i < setting_.operations && !::testing::Test::HasFatalFailure(); ++i) {
        step(file);
        if (::testing::Test::HasFatalFailure()) ADD_FAILURE() << "operation " << i;
      }
    }
    ASSERT_EQ(noted.errors, 0);
    ASSERT_TRUE(below_.bytes == model_) << "the file differs at the end";
  }

 private:
  uint64_t pick(uint64_t n) { return n == 0 ? 0 : random_() % n; }
  uint64_t length() {
    static constexpr uint64_t kLengths[] = {1, 8, 64, 100, 1000, 1024, 4096, 5000, 20'000, 70'000};
    const uint64_t n = kLengths[pick(10)];
    return n > 8000 && pick(4) != 0 ? 512 : n;
  }

  // Phases of one pattern each, so that streams are recognised and left again.
  void step(Opened& file) {
    if (left_ == 0) {
      left_ = 1 + pick(60);
      pattern_ = static_cast<int>(pick(8));
      at_ = pick(model_.size() + 1);
      bytes_ = length();
      step_ = static_cast<int64_t>(pick(40'000)) - 20'000;
      writes_ = pick(2) == 0;
    }
    --left_;
    switch (pattern_) {
      case 0:
      case 1:
        act(file, at_, bytes_, writes_);
        at_ += bytes_;
        break;
      case 2:
        at_ = at_ > bytes_ ? at_ - bytes_ : 0;
        act(file, at_, bytes_, writes_);
        break;
      case 3:
        act(file, at_, bytes_, writes_);
        at_ = static_cast<int64_t>(at_) + step_ < 0
                  ? 0
                  : static_cast<uint64_t>(static_cast<int64_t>(at_) + step_);
        break;
      case 4:  // in turn read and written
        act(file, at_, bytes_, false);
        act(file, at_, bytes_, true);
        at_ += bytes_;
        break;
      case 5:  // two streams
        act(file, at_, 300, false);
        act(file, at_ / 2, 300, false);
        at_ += 300;
        break;
      case 6:
        act(file, pick(model_.size() + 20'000), length(), pick(3) == 0);
        break;
      default:
        rare(file);
    }
    if (model_.size() > 2'000'000) shrink(file, pick(300'000));
  }

  void act(Opened& file, uint64_t offset, uint64_t bytes, bool writes) {
    if (writes) write(file, offset, bytes);
    else read(file, offset, bytes);
  }

  void read(Opened& file, uint64_t offset, uint64_t bytes) {
    std::vector<char> got(bytes, 'x');
    uint64_t there = offset < model_.size() ? model_.size() - offset : 0;
    if (there > bytes) there = bytes;
    Result n = 0;
    if (pick(8) == 0 && bytes > 2) {
      const uint64_t cut = pick(bytes);
      const iovec pieces[] = {
          {got.data(), cut}, {got.data() + cut, 0}, {got.data() + cut, bytes - cut}};
      n = file.transfer({pieces, 3, bytes, offset}, false);
    } else {
      n = file.read(got.data(), bytes, offset);
    }
    if (setting_.short_rate > 0 && n >= 0 && static_cast<uint64_t>(n) < there) {
      ASSERT_TRUE(n > 0);
      there = static_cast<uint64_t>(n);
    }
    ASSERT_EQ(n, static_cast<Result>(there)) << offset << "+" << bytes << " of " << model_.size();
    ASSERT_TRUE(memcmp(got.data(), model_.data() + (there == 0 ? 0 : offset), there) == 0)
        << offset << "+" << bytes;
  }

  void write(Opened& file, uint64_t offset, uint64_t bytes) {
    if (setting_.append) offset = static_cast<uint64_t>(file.size());
    ASSERT_TRUE(!setting_.append || offset == model_.size());
    std::vector<char> data(bytes);
    for (char& c : data) c = static_cast<char>(random_());
    Result n = 0;
    if (pick(8) == 0 && bytes > 2) {
      const uint64_t cut = pick(bytes);
      const iovec pieces[] = {{data.data(), cut}, {data.data() + cut, bytes - cut}};
      n = file.transfer({pieces, 2, bytes, offset}, true);
    } else {
      n = file.write(data.data(), bytes, offset);
    }
    ASSERT_TRUE(n == static_cast<Result>(bytes) || (setting_.short_rate > 0 && n > 0)) << n;
    const auto done = static_cast<uint64_t>(n);
    if (model_.size() < offset + done) model_.resize(offset + done);
    memcpy(model_.data() + offset, data.data(), done);
  }

  void shrink(Opened& file, uint64_t bytes) {
    ASSERT_EQ(file.truncate(bytes), 0);
    model_.resize(bytes);
  }

  void rare(Opened& file) {
    switch (pick(6)) {
      case 0: shrink(file, pick(model_.size() * 3 / 2 + 1)); break;
      case 1:
        ASSERT_EQ(file.flush(), 0);
        ASSERT_TRUE(below_.bytes == model_) << "after flush";
        break;
      case 2: ASSERT_EQ(file.sync(), 0); break;
      case 3: file.invalidate(); break;
      default: ASSERT_EQ(file.size(), static_cast<Result>(model_.size()));
    }
    left_ = 0;
  }

  Setting setting_;
  std::mt19937_64 random_;
  Below below_;
  std::vector<char> model_;
  uint64_t left_ = 0, at_ = 0, bytes_ = 0;
  int64_t step_ = 0;
  int pattern_ = 0;
  bool writes_ = false;
};

class Model : public ::testing::TestWithParam<Setting> {};

TEST_P(Model, AnswersAsAPlainFileDoes) {
  const auto given = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  const uint64_t seed = given != 0 ? given : std::random_device{}() % 99'999 + 1;
  printf("--gtest_random_seed=%llu\n", static_cast<unsigned long long>(seed));
  Walk(GetParam(), seed).go();
}

INSTANTIATE_TEST_SUITE_P(Settings, Model,
                         ::testing::Values(Setting{4096, 1, true, false, 0, 0, 20'000},
                                           Setting{4096, 2, true, false, 0, 0.1, 20'000},
                                           Setting{65536, 4, true, false, 0, 0, 30'000},
                                           Setting{1 << 20, 2, true, false, 0, 0, 20'000},
                                           Setting{16384, 16, true, false, 30, 0.05, 4'000},
                                           Setting{65536, 3, false, false, 60, 0, 4'000},
                                           Setting{12288, 5, true, false, 0, 0, 20'000},
                                           Setting{65536, 4, false, false, 0, 0, 10'000},
                                           Setting{8192, 3, true, true, 0, 0.1, 10'000},
                                           Setting{65536, 4, true, true, 20, 0, 4'000}));

}  // namespace
}  // namespace weir::layers::bufa::test
