// SPDX-License-Identifier: Apache-2.0
// A layer's file in an arena: what the layer accepts outlives the process. Decides the file's
// level, and which files have none who could write their bytes: above a layer that stores another
// form (cos, stripe) the daemon would write the program's bytes over that form.
#pragma once

#include <fcntl.h>

#include "layers/writeback/arena.h"
#include "layers/machinery/stack/file.h"

namespace weir::layers {

// The bytes that this layer hands down are those that lie in the file.
inline bool stands_on_plain_bytes(const stack::Layer& layer) {
  for (const stack::Layer* below = layer.below; below != nullptr; below = below->below) {
    if ((below->kind->flags & stack::kTransforms) != 0) return false;
  }
  return true;
}

// The slot, or -1: bytes must not wait here.
inline int register_file(writeback::Arena* arena, const stack::Layer& layer, bool append) {
  const stack::File& f = *layer.file;
  if (!stands_on_plain_bytes(layer)) return -1;
  return writeback::register_file(
      arena, {&f.descriptor, f.device, f.inode, f.path, append, stack::level_of(layer)});
}

}  // namespace weir::layers
