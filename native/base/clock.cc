// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

namespace weir::base {

constinit ClockState clock_state{};

ClockReading read_clocks() {
  ClockReading best{};
  uint64_t narrowest = ~uint64_t{0};
  for (int i = 0; i < 5; ++i) {
    const uint64_t before = ticks();
    const uint64_t mono = now_ns();
    const uint64_t after = ticks();
    const uint64_t real = clock_ns(CLOCK_REALTIME);
    if (after - before < narrowest) {
      narrowest = after - before;
      const uint64_t skew = static_cast<uint64_t>(clock_state.skew_ns);
      best = {before + (after - before) / 2, mono + skew, real + skew};
    }
  }
  return best;
}

}  // namespace weir::base
