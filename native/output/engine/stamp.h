// SPDX-License-Identifier: Apache-2.0
// Whose a slot is. Before the first byte of a frame comes into its slot, the frame's number is
// written behind the slot's data; who has read the slot looks at it afterwards. So an owner that
// was given up while it slept, and whose frames others have written since, finds out before
// anything of what it read can get a name: the bytes may be a later frame's.
#pragma once

#include <atomic>
#include <cstdint>

namespace weir::output {

class Stamp {
 public:
  static constexpr int64_t kNone = 0;  // as fresh memory has it
  static int64_t of_frame(int64_t number) { return number + 1; }

  // By the slot's process: nothing of the frame is stored before this.
  static void set(char* at, int64_t number) {
    std::atomic_ref<int64_t>(*reinterpret_cast<int64_t*>(at))
        .store(of_frame(number), std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  // By a process that maps the slot: what it has read before this was the frame's.
  static bool is(char* at, int64_t number) {
    std::atomic_thread_fence(std::memory_order_acquire);
    return std::atomic_ref<int64_t>(*reinterpret_cast<int64_t*>(at))
               .load(std::memory_order_relaxed) == of_frame(number);
  }
};

}  // namespace weir::output
