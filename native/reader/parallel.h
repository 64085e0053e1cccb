// SPDX-License-Identifier: Apache-2.0
// A piece of work on several threads.
#pragma once

#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace weir::reader {

// work(0) ... work(count - 1), each on a thread of its own, the first on the caller's. Throws what the first of them that failed threw.
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

}  // namespace weir::reader
