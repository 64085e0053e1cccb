// SPDX-License-Identifier: Apache-2.0
// Which file of a directory is this node's container: NAME.zip where no other node has it, else
// NAME@HOST.zip. A lock on the file (F_OFD_SETLK) says whether another node has it.
#pragma once

#include "base/text.h"
#include "layers/pack/container.h"

namespace weir::layers::pack {

// This node, as it stands in names of files.
void add_node(base::Writer& to);
// Whether a name in the directory is a container of this rule: 1 NAME.zip, 2 of some node, 0 none.
int kind_of_name(const rules::LayerSpec& spec, base::Text name);
// Opens the container of that name and takes part in it as this node. first: no other process of
// the node has it. -errno; -EAGAIN: another node has it, or the file system has no locks.
long take_file(Container& c, const char* name, bool first, int flags);

// This process no longer has the container for its node, whoever has a copy of the descriptor (the
// write-back daemon, for a moment).
void end_lock(const Container& c);

}  // namespace weir::layers::pack
