// SPDX-License-Identifier: Apache-2.0
// How large this job is, as launchers say it in the environment: how many ranks share a node's
// cache, and whether there are others.
#pragma once

#include <stdint.h>

namespace weir::cache {

struct Job {
  uint32_t ranks;     // of this node, at least 1
  uint32_t nodes;     // 1 when not known to be more
  bool one_host;      // its nodes are emulated by WEIR_NODE_RANKS, on one host
  bool launched;      // by a parallel launcher: its ranks are there from the beginning
};

// Read once.
const Job& job();

}  // namespace weir::cache
