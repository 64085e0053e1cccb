// SPDX-License-Identifier: Apache-2.0
// What an owner needs of memory, and the sizes of its buffers within the budget of the
// configuration (server_memory).
#pragma once

#include "output/engine/setup.h"

namespace weir::output {

// Slabs are large enough for large writes, and small enough that one stays in a core's cache
// between transposition and write.
SlabLimits slab_limits(const Settings& settings);

// Of a slab as it comes from the clients that an owner cannot see: all that is within their bounds.
int64_t staging_bytes(const Setup& setup, const Section& section, const Part& slab);

// The greatest slab of this owner, in the file's or the model's type, and the greatest staging of
// one.
struct BufferSizes {
  int64_t slab = 0, staging = 0, accumulators = 0;
};
BufferSizes buffer_sizes(const Setup& setup);

// WEIR_E_MEMORY with the bytes that are needed when the budget does not suffice. Adds the buffers
// to setup->memory_bytes.
Status check_memory(Setup* setup);

}  // namespace weir::output
