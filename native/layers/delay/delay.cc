// SPDX-License-Identifier: Apache-2.0
#include "layers/delay/declared.h"

#include <errno.h>
#include <time.h>

#include "layers/chance/chance.h"
#include "base/syscall.h"
#include "layers/machinery/rules/rules.h"

namespace weir::layers {
namespace {

using namespace stack;
using namespace delay_declared;

constexpr int64_t kNsPerSecond = 1'000'000'000;

struct State {
  Chance chance;
  uint64_t least_ns, jitter_ns;
};

State& state(Layer& layer) { return *static_cast<State*>(layer.state()); }

Result create(Layer& layer) {
  State& s = state(layer);
  s.least_ns = rules::option_number(*layer.spec, "us", kDefaultUs) * 1000;
  s.jitter_ns = rules::option_number(*layer.spec, "jitter_us", kDefaultJitterUs) * 1000;
  if (!s.chance.read_options(*layer.spec, kOnAny)) return -EINVAL;
  s.chance.spare(layer);
  return 0;
}

// Until that time, whatever signals come in between.
void sleep_for(uint64_t ns) {
  timespec until;
  base::system_call(SYS_clock_gettime, CLOCK_MONOTONIC, reinterpret_cast<long>(&until));
  const int64_t sum = until.tv_nsec + static_cast<int64_t>(ns);
  until.tv_sec += sum / kNsPerSecond;
  until.tv_nsec = sum % kNsPerSecond;
  while (base::system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME,
                           reinterpret_cast<long>(&until)) == -EINTR) {}
}

void wait(Layer& layer, uint64_t picked) {
  if (picked == 0) return;
  const State& s = state(layer);
  const uint64_t ns = s.least_ns + (s.jitter_ns != 0 ? picked % (s.jitter_ns + 1) : 0);
  sleep_for(ns);
  base::fetch_add(&layer.statistics[kDelayed], uint64_t{1});
  base::fetch_add(&layer.statistics[kWaited], ns);
}

Result open(Layer& layer, Opening& o) {
  wait(layer, state(layer).chance.pick(kOnOpen));
  return open_below(layer, o);
}
Result read(Layer& layer, const Transfer& t) {
  wait(layer, state(layer).chance.pick(kOnRead, layer, t));
  return read_below(layer, t);
}
Result write(Layer& layer, const Transfer& t) {
  wait(layer, state(layer).chance.pick(kOnWrite, layer, t));
  return write_below(layer, t);
}
Result truncate(Layer& layer, uint64_t bytes) {
  wait(layer, state(layer).chance.pick(kOnTruncate));
  return truncate_below(layer, bytes);
}
Result sync(Layer& layer, bool data_only) {
  wait(layer, state(layer).chance.pick(kOnSync));
  return sync_below(layer, data_only);
}
void close(Layer& layer) { wait(layer, state(layer).chance.pick(kOnClose)); }

}  // namespace

const Kind kDelay = {
    .name = kName, .flags = kOrdered, .state_bytes = sizeof(State), .statistics_count = kStatistics,
    .create = create, .open = open, .ready = nullptr, .read = read, .write = write, .size = nullptr,
    .truncate = truncate, .flush = nullptr, .sync = sync, .invalidate = nullptr, .close = close,
};

}  // namespace weir::layers
