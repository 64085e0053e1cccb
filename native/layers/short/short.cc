// SPDX-License-Identifier: Apache-2.0
#include "layers/short/declared.h"

#include <errno.h>

#include "layers/chance/chance.h"
#include "layers/machinery/rules/rules.h"

namespace weir::layers {
namespace {

using namespace stack;
using namespace short_declared;

constexpr int kMostPieces = 16;

struct State {
  Chance chance;
  uint64_t most;  // bytes; 0: by chance
};

State& state(Layer& layer) { return *static_cast<State*>(layer.state()); }

Result create(Layer& layer) {
  State& s = state(layer);
  s.most = rules::option_number(*layer.spec, "bytes", 0);
  if (!s.chance.read_options(*layer.spec, kOnRead | kOnWrite)) return -EINVAL;
  s.chance.spare(layer);
  return 0;
}

// The beginning of a transfer: at least one byte, at most `most`, and no more pieces than fit.
struct Beginning {
  iovec pieces[kMostPieces];
  Transfer transfer;

  Beginning(const Transfer& whole, uint64_t most) : transfer(whole) {
    transfer.pieces = pieces;
    transfer.count = 0;
    transfer.bytes = 0;
    for (int i = 0; i < whole.count && transfer.count < kMostPieces && transfer.bytes < most; ++i) {
      iovec piece = whole.pieces[i];
      if (piece.iov_len == 0) continue;
      if (piece.iov_len > most - transfer.bytes) piece.iov_len = most - transfer.bytes;
      transfer.bytes += piece.iov_len;
      pieces[transfer.count++] = piece;
    }
  }
};

template <typename Below>
Result shortening(Layer& layer, Operation operation, const Transfer& t, Below below) {
  State& s = state(layer);
  const uint64_t picked = t.bytes > 1 ? s.chance.pick(operation, layer, t) : 0;
  if (picked == 0) return below(t);
  const uint64_t most = s.most == 0 ? 1 + picked % (t.bytes - 1) : s.most;
  if (most >= t.bytes) return below(t);
  base::fetch_add(&layer.statistics[kShortened], uint64_t{1});
  return below(Beginning(t, most).transfer);
}

Result read(Layer& layer, const Transfer& t) {
  return shortening(layer, kOnRead, t,
                    [&](const Transfer& part) { return read_below(layer, part); });
}
Result write(Layer& layer, const Transfer& t) {
  return shortening(layer, kOnWrite, t,
                    [&](const Transfer& part) { return write_below(layer, part); });
}

}  // namespace

const Kind kShort = {
    .name = kName, .flags = 0, .state_bytes = sizeof(State), .statistics_count = kStatistics,
    .create = create, .open = nullptr, .ready = nullptr, .read = read, .write = write,
    .size = nullptr, .truncate = nullptr, .flush = nullptr, .sync = nullptr, .invalidate = nullptr,
    .close = nullptr,
};

}  // namespace weir::layers
