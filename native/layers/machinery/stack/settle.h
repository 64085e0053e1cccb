// SPDX-License-Identifier: Apache-2.0
// Who holds bytes of a file that is about to be emptied, or changed by name, leaves its layers
// first (table.h has settle()).
#pragma once

namespace weir::stack {

// Before an open with O_TRUNC. Where all holders share the layers that this opening will have, and
// hold nothing that the file lacks, they stay: the layer takes the file for an empty one when this
// opening is ready (Kind::ready).
void settle_emptied(int directory, const char* path, int flags);

}  // namespace weir::stack
