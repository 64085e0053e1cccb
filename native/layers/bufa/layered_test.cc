// SPDX-License-Identifier: Apache-2.0
// bufa over a layer that holds bytes: what is below is entered by the thread that has the file's
// lock and by no other, as layer.h promises it.
#include <gtest/gtest.h>

#include <atomic>

#include "layers/bufa/fake_test.h"

namespace weir::layers::bufa::test {
namespace {

std::atomic<uint64_t> entered, entered_without_lock;

void look(const Layer& l) {
  ++entered;
  if ((base::load(&l.file->lock) & ~stack::kWaiters) != stack::this_thread())
    ++entered_without_lock;
}

Result seen_read(Layer& l, const Transfer& t) { return look(l), fake_read(l, t); }
Result seen_write(Layer& l, const Transfer& t) { return look(l), fake_write(l, t); }
Result seen_size(Layer& l) { return look(l), fake_size(l); }

constexpr stack::Kind seen_kind(uint32_t flags) {
  stack::Kind kind = kFake;
  kind.flags = flags;
  kind.read = seen_read;
  kind.write = seen_write;
  kind.size = seen_size;
  return kind;
}
constexpr stack::Kind kSystem = seen_kind(0), kHolder = seen_kind(stack::kHolds),
                      kManyAtOnce = seen_kind(stack::kHolds | stack::kConcurrent);

class Layered : public ::testing::Test {
 protected:
  Layered() {
    below = &below_;
    below_.random.seed(1);
    below_.steady_delay_us = 200;
    has_daemon = true;
    noted = {};
    entered = entered_without_lock = 0;
  }

  Below below_;

  // bufa over `lower`: 256 KiB are written in pieces, and read in order and in steps.
  void use(const stack::Kind& lower, int flags) {
    auto* file = static_cast<stack::File*>(calloc(1, sizeof(stack::File) + 64));
    file->flags = flags;
    file->descriptor = -1;
    below_.append = (flags & O_APPEND) != 0;
    rules::LayerSpec spec;
    spec.args[0] = 4096;
    spec.args[1] = 2;
    spec.arg_count = 2;
    rules::Option always{base::text("always"), base::text("1")};
    spec.options = &always;
    spec.option_count = 1;
    uint64_t statistics[kStatistics] = {};
    Layer layers[2];
    layers[1] = Layer{&lower, nullptr, file, &spec, nullptr, 1, nullptr, {}};
    Layer* u = &layers[1];
    layers[0] = Layer{&kBufa,
                      u,
                      file,
                      &spec,
                      statistics,
                      0,
                      calloc(1, kBufa.state_bytes),
                      {u, u, u, u, u, u, u, u}};
    file->top = layers;
    file->layer_count = 2;
    kBufa.create(layers[0]);
    kBufa.ready(layers[0]);
    for (uint64_t at = 0; at < kBytes; at += kPiece) transfer(layers[0], at, true);
    for (uint64_t at = 0; at < kBytes; at += kPiece) transfer(layers[0], at, false);
    for (uint64_t at = 0; at < kBytes; at += 16 * kPiece) transfer(layers[0], at, false);
    stack::lock(file);
    kBufa.flush(layers[0]);
    kBufa.close(layers[0]);
    free(layers[0].state_);
    free(file);
    ASSERT_EQ(below_.bytes.size(), kBytes);
    for (uint64_t i = 0; i < kBytes; ++i) ASSERT_EQ(below_.bytes[i], expected(i)) << i;
  }

 private:
  static constexpr uint64_t kBytes = 256 << 10, kPiece = 512;
  static char expected(uint64_t offset) { return static_cast<char>((offset * 2654435761u) >> 13); }

  void transfer(Layer& top, uint64_t offset, bool writes) {
    char data[kPiece];
    for (uint64_t i = 0; i < kPiece; ++i) data[i] = writes ? expected(offset + i) : 0;
    const iovec piece{data, kPiece};
    stack::lock(top.file);
    const Result moved = (writes ? kBufa.write : kBufa.read)(top, {&piece, 1, kPiece, offset});
    stack::unlock(top.file);
    ASSERT_EQ(moved, static_cast<Result>(kPiece));
    for (uint64_t i = 0; i < kPiece; ++i) ASSERT_EQ(data[i], expected(offset + i)) << offset + i;
  }
};

TEST_F(Layered, OverALayerThatHoldsEveryRequestIsMadeWithTheLock) {
  for (const int flags : {O_RDWR, O_RDWR | O_APPEND}) {
    below_.bytes.clear();
    use(kHolder, flags);
    EXPECT_GT(entered, 100u);
    EXPECT_EQ(entered_without_lock, 0u) << "of " << entered;
  }
}

TEST_F(Layered, OverTheSystemRequestsAreMadeByTheThreadsOfThePool) {
  use(kSystem, O_RDWR);
  EXPECT_GT(entered_without_lock, 30u);
}

TEST_F(Layered, OverALayerThatIsMadeForManyAtOnceToo) {
  use(kManyAtOnce, O_RDWR);
  EXPECT_GT(entered_without_lock, 30u);
}

}  // namespace
}  // namespace weir::layers::bufa::test
