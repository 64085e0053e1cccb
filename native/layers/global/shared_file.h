// SPDX-License-Identifier: Apache-2.0
// A file whose blocks the ranks of a node share: what layers `global` and `gather` have in common.
// The cache itself, and who waits for whom in it, is cache/; here is decided which files are worth
// it, and what goes past it.
#pragma once

#include "layers/cache/cache.h"
#include "layers/machinery/stack/layer.h"

namespace weir::layers::shared_file {

struct State {
  cache::Opening opening;
  uint32_t block_bytes, slots;
  uint32_t wasted_blocks;  // cache::Policy
  uint64_t wait_ns;
  uint32_t forwarders;     // processes of the node that make the requests (forward); 0: the ranks
  bool keeps_reads;
  bool always;    // never bypasses a file: for tests, and for who knows better
  bool tried, attached;
  bool noted_large, noted_held_up, noted_no_forwarder;
  uint32_t noted_bypass;
  uint8_t found_cached;  // blocks in a row that the kernel had already
};

inline State& state_of(stack::Layer& l) { return *static_cast<State*>(l.state()); }

// slots: blocks that the node's cache has for such files.
void begin(stack::Layer&, uint64_t block_bytes, uint64_t slots, bool keeps_reads);
stack::Result ready(stack::Layer&);
// The cache has the file from then on. False: the layer passes everything on.
bool attach(stack::Layer&);
stack::Result read(stack::Layer&, const stack::Transfer&);
stack::Result write(stack::Layer&, const stack::Transfer&);
stack::Result size(stack::Layer&);
stack::Result truncate(stack::Layer&, uint64_t bytes);
stack::Result flush(stack::Layer&);
stack::Result sync(stack::Layer&, bool data_only);
void invalidate(stack::Layer&);
void close(stack::Layer&);

// What global and gather have in common: all but their names, statistics and arguments.
constexpr stack::Kind kind_of(const char* name, int statistics,
                              stack::Result (*create)(stack::Layer&)) {
  return {
      .name = name,
      .flags = stack::kHolds | stack::kSharesNode,
      .state_bytes = sizeof(State),
      .statistics_count = statistics,
      .create = create,
      .open = nullptr,
      .ready = ready,
      .read = read,
      .write = write,
      .size = size,
      .truncate = truncate,
      .flush = flush,
      .sync = sync,
      .invalidate = invalidate,
      .close = close,
  };
}

}  // namespace weir::layers::shared_file
