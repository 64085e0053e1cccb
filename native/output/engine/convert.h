// SPDX-License-Identifier: Apache-2.0
// From the model's type to the file's, and to the file's byte order, in the same copy that moves the data to their place.
#pragma once

#include "output/core/types.h"

namespace weir::output {

// `count` elements. Values that an integer cannot hold become its nearest end; NaN becomes `fill`.
using Convert = void (*)(const void* from, void* to, int64_t count, double fill);

// From the native order.
Convert converter(Type from, Type to, ByteOrder order);

}  // namespace weir::output
