// SPDX-License-Identifier: Apache-2.0
// Answers of a node without a registry, where none is linked in (tests of a room by itself).
#include "node/registry.h"

namespace weir::node {

#define WEIR_WEAK __attribute__((weak))
WEIR_WEAK bool any() { return false; }
WEIR_WEAK Verdict open(const Asking&, Lease** lease) { *lease = nullptr; return Verdict::kGranted; }
WEIR_WEAK void leave(Lease*) {}
WEIR_WEAK void close(Lease*) {}
WEIR_WEAK bool recall(uint64_t, uint64_t, Lease*) { return false; }
WEIR_WEAK void on_recall(void (*)(void*, Lease*)) {}
WEIR_WEAK void publish_size(Lease*, uint64_t) {}
WEIR_WEAK void withdraw_size(Lease*) {}
WEIR_WEAK bool size_of(uint64_t, uint64_t, uint64_t*) { return false; }
WEIR_WEAK bool any_sizes() { return false; }
WEIR_WEAK void forked_leases() {}

}  // namespace weir::node
