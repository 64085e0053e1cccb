// SPDX-License-Identifier: Apache-2.0
// Where the system opens a file in a few microseconds (local disks, memory) a layer that saves
// opens has nothing to save. What the program's own opens cost is measured per device; when it has
// been little often enough, files there are opened without the layer, and after a name's first open
// no question is asked about it: the open is the program's and nothing else.
//
// Such opens are not in the node's registry. That is safe because only files under layers that are
// bypassed are concerned, all ranks of the node hear of it (node::agree_bypass), and while anybody
// holds anything the registry is asked as ever.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/clock.h"

namespace weir::stack {

inline constexpr uint64_t kCheapNs = 30'000;  // of an open; local file systems take some
                                              // microseconds, a metadata server 200 and more

// Between the two one open says little: a new file on a local disk takes as long.
inline constexpr uint64_t kDearNs = 200'000;

inline bool was_cheap(uint64_t ns) { return ns <= kCheapNs; }
// An open on the device, measured. True: from now on opens there are known to be cheap, with this
// one.
bool learn_open(uint64_t device, bool cheap);
// Several opens on the device were not cheap.
bool is_dear(uint64_t device);
// Opens on the device are cheap, as this rank or another of the node has found.
bool is_bypassed_device(uint64_t device);

// A name whose file needs no layers, remembered and asked for after its open: the kernel has read
// it, so it can be read.
extern WEIR_OWN uint32_t bypassed_names;
WEIR_INLINE bool any_bypassed() { return WEIR_UNLIKELY(base::load_relaxed(&bypassed_names) != 0); }
void bypass_name(int directory, const char* path, int flags);
bool is_bypassed_name(int directory, const char* path, int flags);
// Relative names mean other files from now on.
void directory_changed();

}  // namespace weir::stack
