// SPDX-License-Identifier: Apache-2.0
// How a program walks through a file, derived from its last requests. No memory of its own, no
// clock: a request in, a shape out.
#pragma once

#include <stdint.h>

#include "base/round.h"

namespace weir::layers::bufa {

enum class Shape : uint8_t { kNone, kForward, kBackward, kStrided };

struct Found {
  Shape shape;
  int64_t
      step;  // from one request's offset to the next one's; 0: the one ends where the other begins
};

// The last requests that no stream expected. Several streams may be interleaved in any order: each
// new request is compared with all.
class History {
 public:
  static constexpr uint32_t kRequests = 16;

  // What the request makes of those before it; then it is one of them.
  // Forward: it begins where one ended. Backward: it ends where one began, and that one did so too.
  // Strided: four requests of one length at equal distances; with gaps that are no larger than a
  // request or a page they count as forward or backward.
  Found add(uint64_t offset, uint64_t bytes);
  void clear() { count_ = 0; }

 private:
  struct Request {
    uint64_t offset, bytes;
  };
  const Request* find(uint64_t offset, uint64_t bytes, uint32_t older_than, uint32_t* age) const;
  const Request& aged(uint32_t age) const {
    return ring_[(count_ - 1 - age) % kRequests];
  }  // 0: the newest
  uint32_t known() const { return count_ < kRequests ? count_ : kRequests; }
  Found look(uint64_t offset, uint64_t bytes) const;

  Request ring_[kRequests];
  uint32_t count_;  // of all; wraps
};

inline constexpr uint64_t kPage = 4096;
using base::round_down;
using base::round_up;

// Bytes between two requests of one length at this distance.
constexpr uint64_t gap_of(int64_t step, uint64_t bytes) {
  const auto distance = static_cast<uint64_t>(step < 0 ? -step : step);
  return distance > bytes ? distance - bytes : 0;
}

// So close to one another that everything is read: no more than twice the bytes, or a page for each
// request.
constexpr bool dense(int64_t step, uint64_t bytes) {
  return gap_of(step, bytes) <= (bytes > kPage ? bytes : kPage);
}

}  // namespace weir::layers::bufa
