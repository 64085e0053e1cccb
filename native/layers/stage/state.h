// SPDX-License-Identifier: Apache-2.0
// What the layer knows of an opening.
#pragma once

#include "layers/machinery/stack/layer.h"
#include "layers/stage/tier.h"

namespace weir::layers::stage {

struct State {
  const weir::stage::Tier* tier;  // not null: the open file is on it
  uint64_t inode, generation;
  bool writes;
  int process;  // that opened it: a forked child of it is another
  weir::stage::Mode mode;
  uint32_t within;  // threads in a call that changes the file; kMoving: none may begin one
};
inline State& state(stack::Layer& layer) { return *static_cast<State*>(layer.state()); }

// A write, which moves the file to its place when the tier has no room for it.
stack::Result write(stack::Layer& layer, const stack::Transfer& t);
stack::Result truncate(stack::Layer& layer, uint64_t bytes);
// After a call of the kernel's own (copy_file_range) had no room. True: it has now.
bool make_space(stack::Layer& layer);
// Before a mapping of these bytes that writes them.
stack::Result reserve(stack::Layer& layer, uint64_t at, uint64_t bytes);

}  // namespace weir::layers::stage
