// SPDX-License-Identifier: Apache-2.0
// A piece of work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <numeric>
#include <thread>
#include <vector>

namespace weir::reader {

// work(0) ... work(count - 1), each on a thread of its own, the first on the caller's. Throws what
// the first of them that failed threw.
// cost: count - 1 threads begun and joined. Throws std::system_error too: no thread could be
//   begun.
template <class Work>
void in_parallel(size_t count, Work work) {
  std::vector<std::exception_ptr> failures(count);
  const auto guarded = [&](size_t i) {
    try {
      work(i);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < count; ++i) threads.emplace_back(guarded, i);
    if (count != 0) guarded(0);
  }
  for (const auto& failure : failures) {
    if (failure != nullptr) std::rethrow_exception(failure);
  }
}

// work(thread, 0) ... work(thread, count - 1) on so many threads, or one for each where there are
// more: each thread takes the next that none has taken.
template <class Work>
void each_in_parallel(size_t threads, size_t count, Work work) {
  std::atomic<size_t> next = 0;
  in_parallel(std::min(threads, count), [&](size_t thread) {
    for (size_t i; (i = next.fetch_add(1)) < count;) work(thread, i);
  });
}

// The share of each thing: those of most weight first, each to the share that has least.
inline std::vector<size_t> shares_of(const std::vector<uint64_t>& weights, size_t shares) {
  std::vector<uint64_t> given(shares);
  std::vector<size_t> order(weights.size()), share_of(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  for (size_t one : order) {
    const auto least = std::min_element(given.begin(), given.end());
    *least += weights[one];
    share_of[one] = size_t(least - given.begin());
  }
  return share_of;
}

}  // namespace weir::reader
