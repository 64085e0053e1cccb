// SPDX-License-Identifier: Apache-2.0
// Which requests a fault layer touches: by operation, byte range, count and seeded chance. The n-th
// request of a file that fits gets the same answer in every run with the same seed, whatever the
// timing.
#pragma once

#include <stdint.h>

#include "layers/machinery/stack/file.h"
#include "layers/machinery/stack/layer.h"

namespace weir::layers {

enum Operation : uint32_t {
  kOnOpen = 1,
  kOnRead = 2,
  kOnWrite = 4,
  kOnSync = 8,
  kOnTruncate = 16,
  kOnClose = 32,
  kOnAny = 63
};

struct Chance {
  uint32_t operations;
  uint64_t first, last;    // bytes of the file, both included
  uint64_t after,
      times;  // the first `after` requests that fit are spared; then at most `times` are touched
  uint64_t limit;          // of a random number of 64 bits
  uint64_t mixed_seed;
  uint64_t seen, touched;  // atomic

  // op=, first=, last=, after=, times=, rate=, seed= of the layer's options. False: an operation
  // that does not exist.
  bool read_options(const rules::LayerSpec& spec, uint32_t operations_otherwise);
  // A random number when this request is touched (never 0), else 0.
  uint64_t pick(Operation operation);
  uint64_t pick(Operation operation, const stack::Layer& layer, const stack::Transfer& t) {
    return (operations & operation) != 0 ? pick_transfer(layer, t) : 0;
  }
  // Whether no request of this operation will ever be touched.
  bool never(Operation operation) const {
    return (operations & operation) == 0 || limit == 0 || times == 0;
  }
  // Of create(): the layer is not asked about what it never touches.
  void spare(stack::Layer& layer) const {
    layer.passes_reads = never(kOnRead);
    layer.passes_writes = never(kOnWrite);
  }

 private:
  WEIR_COLD uint64_t pick_transfer(const stack::Layer& layer, const stack::Transfer& t);
  uint64_t pick_counted();
};

}  // namespace weir::layers
