// SPDX-License-Identifier: Apache-2.0
// Requests to valgrind, made by instructions without effect (valgrind's manual, "The Client Request
// mechanism"): elsewhere each costs some five instructions and returns 0.
#pragma once

#include <stdint.h>

namespace weir::base::valgrind {

inline constexpr uint64_t kIsRunning = 0x1001, kChangeErrorDisablement = 0x1801;

inline uint64_t request(uint64_t what, int64_t argument) {
  uint64_t asked[6] = {what, static_cast<uint64_t>(argument), 0, 0, 0, 0};
#if defined(__x86_64__)
  uint64_t result = 0;
  __asm__ volatile(
      "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, "
      "%%rbx"
      : "+d"(result)
      : "a"(asked)
      : "cc", "memory");
  return result;
#elif defined(__aarch64__)
  register uint64_t result __asm__("x3") = 0;
  register uint64_t* at __asm__("x4") = asked;
  __asm__ volatile(
      "ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\torr x10, "
      "x10, x10"
      : "+r"(result)
      : "r"(at)
      : "cc", "memory");
  return result;
#endif
}

inline bool is_running() { return request(kIsRunning, 0) != 0; }

// While it lives the calling thread may look at memory that nobody has written to, without a
// report.
class Unreported {
 public:
  Unreported() { request(kChangeErrorDisablement, 1); }
  ~Unreported() { request(kChangeErrorDisablement, -1); }
  Unreported(const Unreported&) = delete;
  Unreported& operator=(const Unreported&) = delete;
};

}  // namespace weir::base::valgrind
