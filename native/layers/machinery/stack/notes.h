// SPDX-License-Identifier: Apache-2.0
// What the trace and the exit report say about layers.
#pragma once

#include "layers/machinery/stack/file.h"

namespace weir::stack {

// by: the layer whose wish or presence it was; null: the stack's top.
void note_bypass(const File* f, const Layer* by, Reason);
void note_statistics(const File* f);
void note_error(const File* f, const Layer* by, int error, uint64_t lost_bytes);

// Keeps the first error until it is reported, and counts what is lost. Without a layer: what its
// flush gave back.
void defer(File* f, const Layer* by, int error, uint64_t lost_bytes);

}  // namespace weir::stack
