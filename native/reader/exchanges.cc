// SPDX-License-Identifier: Apache-2.0
#include "reader/exchanges.h"

#include <unordered_map>

#include "reader/in_order.h"
#include "reader/ops.h"
#include "reader/parallel.h"

namespace weir::reader {
namespace {

constexpr uint32_t kAwaitedReceive = 1;  // in the upper half of the size of what a wait completed
constexpr size_t kMostPeers = 4096;

class OfProcess {
 public:
  explicit OfProcess(uint32_t process) : process_(process) {}

  void take(const Words& record) {
    const auto op = wire::Op(record.op());
    const uint32_t routine = uint32_t(record.size() >> 32);
    const bool received =
        op == wire::Op::kMpiReceive || (op == wire::Op::kMpiAwaited && routine == kAwaitedReceive);
    const bool together =
        op == wire::Op::kMpiCollective || op == wire::Op::kMpiStartCollective;
    if ((!received && !together) || record.has_failed()) return;
    const bool is_root = (record.flags() & wire::kRoot) != 0;
    const uint64_t peer = received ? record.offset() : is_root;
    weir_reader_exchange& one = of(record.file(), received ? 0 : routine,
                                   uint32_t(peer < WEIR_READER_NO_ROW ? peer : WEIR_READER_NO_ROW));
    ++one.calls;
    one.bytes += uint32_t(record.size());
  }

  void give(std::vector<weir_reader_exchange>& out) const {
    out.insert(out.end(), found_.begin(), found_.end());
  }

 private:
  // Neighbours are often alike.
  weir_reader_exchange& of(uint32_t file, uint32_t routine, uint32_t peer) {
    if (last_ < found_.size() && is_of(found_[last_], file, routine, peer)) return found_[last_];
    if (routine == 0 && found_.size() >= kMostPeers) file = 0, peer = WEIR_READER_NO_ROW;
    const Key key = {uint64_t(file) << 32 | peer, routine};
    const auto [at, is_new] = at_.try_emplace(key, found_.size());
    if (is_new) found_.push_back({process_, file, routine, peer, 0, 0});
    last_ = at->second;
    return found_[last_];
  }

  static bool is_of(const weir_reader_exchange& one, uint32_t file, uint32_t routine,
                    uint32_t peer) {
    return one.file == file && one.routine == routine && one.peer == peer;
  }

  using Key = std::pair<uint64_t, uint32_t>;
  struct Hash {
    size_t operator()(const Key& key) const {
      return (key.first * 0x9e3779b97f4a7c15u) ^ (key.second * 0xc2b2ae3d27d4eb4fu);
    }
  };

  const uint32_t process_;
  std::vector<weir_reader_exchange> found_;
  std::unordered_map<Key, size_t, Hash> at_;
  size_t last_ = 0;
};

}  // namespace

std::vector<weir_reader_exchange> find_exchanges(const Mapping& file, const Index& index,
                                                 unsigned threads) {
  std::vector<Chunks> chunks = chunks_of(index);
  for (Chunks& some : chunks) std::erase_if(some, [](const auto* one) { return one->silent == 0; });
  std::vector<std::vector<weir_reader_exchange>> found(chunks.size());
  each_in_parallel(threads, chunks.size(), [&](size_t, size_t process) {
    if (chunks[process].empty()) return;
    OfProcess of{uint32_t(process)};
    for (ThreadLog log(file, chunks[process]); !log.is_over(); log.next()) {
      of.take(log.record());
    }
    of.give(found[process]);
  });
  std::vector<weir_reader_exchange> all;
  for (const auto& some : found) all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace weir::reader
