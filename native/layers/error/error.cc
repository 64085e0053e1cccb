// SPDX-License-Identifier: Apache-2.0
#include "layers/error/declared.h"

#include <errno.h>

#include "layers/chance/chance.h"
#include "layers/machinery/rules/rules.h"

namespace weir::layers {
namespace {

using namespace stack;
using namespace error_declared;


struct State {
  Chance chance;
  int error;
};

State& state(Layer& layer) { return *static_cast<State*>(layer.state()); }

Result create(Layer& layer) {
  State& s = state(layer);
  base::Text name;
  s.error = rules::option_text(*layer.spec, "errno", &name) ? rules::errno_number(name) : EIO;
  if (!s.chance.read_options(*layer.spec, kOnAny) || s.error <= 0) return -EINVAL;
  s.chance.spare(layer);
  return 0;
}

template <typename Below>
Result failing(Layer& layer, uint64_t picked, Below below) {
  if (picked == 0) return below();
  base::fetch_add(&layer.statistics[kFailed], uint64_t{1});
  return -state(layer).error;
}

Result open(Layer& layer, Opening& o) {
  return failing(layer, state(layer).chance.pick(kOnOpen), [&] { return open_below(layer, o); });
}
Result read(Layer& layer, const Transfer& t) {
  return failing(layer, state(layer).chance.pick(kOnRead, layer, t),
                 [&] { return read_below(layer, t); });
}
Result write(Layer& layer, const Transfer& t) {
  return failing(layer, state(layer).chance.pick(kOnWrite, layer, t),
                 [&] { return write_below(layer, t); });
}
Result truncate(Layer& layer, uint64_t bytes) {
  return failing(layer, state(layer).chance.pick(kOnTruncate),
                 [&] { return truncate_below(layer, bytes); });
}
Result sync(Layer& layer, bool data_only) {
  return failing(layer, state(layer).chance.pick(kOnSync),
                 [&] { return sync_below(layer, data_only); });
}

// The call that closes hears of deferred errors: this is one that loses nothing.
void close(Layer& layer) {
  if (state(layer).chance.pick(kOnClose) == 0) return;
  base::fetch_add(&layer.statistics[kFailed], uint64_t{1});
  defer_error(layer, state(layer).error, 0);
}

}  // namespace

const Kind kError = {
    .name = kName, .flags = kOrdered, .state_bytes = sizeof(State), .statistics_count = kStatistics,
    .create = create, .open = open, .ready = nullptr, .read = read, .write = write, .size = nullptr,
    .truncate = truncate, .flush = nullptr, .sync = sync, .invalidate = nullptr, .close = close,
};

}  // namespace weir::layers
