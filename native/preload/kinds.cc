// SPDX-License-Identifier: Apache-2.0
#include "preload/kinds.h"

#include "layers/system/system.h"
#include "layers/machinery/stack/build.h"

// Linked in as their directories are there (CMakeLists.txt).
#define WEIR_KINDS(one) one(kEvent) one(kBufa) one(kCos) one(kGlobal) one(kGather) one(kKeep) one(kHints) one(kStripe) one(kError) one(kDelay) one(kShort) one(kHold)

namespace weir::layers {
#define WEIR_DECLARE(kind) extern const stack::Kind kind __attribute__((weak));
WEIR_KINDS(WEIR_DECLARE)
#undef WEIR_DECLARE
}  // namespace weir::layers

namespace weir::preload {
namespace {

#define WEIR_LIST_ONE(kind) &layers::kind,
constexpr const stack::Kind* kKinds[] = {&layers::kSystem, WEIR_KINDS(WEIR_LIST_ONE)};
#undef WEIR_LIST_ONE

}  // namespace

void register_kinds() { stack::set_kinds(kKinds, sizeof kKinds / sizeof kKinds[0]); }

}  // namespace weir::preload
