// SPDX-License-Identifier: Apache-2.0
#include "preload/kinds.h"

#include "layers/machinery/stack/build.h"

// In the archive for static programs only layers that need neither threads nor a daemon.
#define WEIR_STATIC_KIND(kind) WEIR_ONE(kind)
#ifdef WEIR_LINKED
#define WEIR_KIND(kind)
#else
#define WEIR_KIND(kind) WEIR_ONE(kind)
#endif

namespace weir::layers {
#define WEIR_ONE(kind) extern WEIR_OWN const stack::Kind kind;
#include "layers/kinds.def"
#undef WEIR_ONE
}  // namespace weir::layers

namespace weir::preload {
namespace {

constexpr const stack::Kind* kKinds[] = {
#define WEIR_ONE(kind) &layers::kind,
#include "layers/kinds.def"
#undef WEIR_ONE
};

}  // namespace

void register_kinds() { stack::set_kinds(kKinds, sizeof kKinds / sizeof kKinds[0]); }

}  // namespace weir::preload
