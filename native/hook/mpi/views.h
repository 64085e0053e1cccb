// SPDX-License-Identifier: Apache-2.0
// File views in the trace: which bytes of the file a rank sees, as a name without records
// (docs/formats/trace.md, 3.8).
#pragma once

#include "hook/mpi/handles.h"

namespace weir::hook {

struct View {
  int64_t displacement;
  Handle etype, filetype;
};

// Bytes of an element and of the file type, and how far the latter extends; -1: MPI does not
// return it.
struct ViewSizes {
  int64_t unit = -1, bytes = -1, lower = 0, extent = -1;
};
// cost: calls of MPI. errno may change.
ViewSizes sizes_of(const View& view);

// After a successful MPI_File_set_view on the file with this name. The first calls on a file alone
// are noted, none at level summary. cost: the types are taken apart by calls of MPI, within the
// limits of views.cc. errno may change.
void note_view(uint32_t file, const View& view, const ViewSizes& sizes);

}  // namespace weir::hook
