// SPDX-License-Identifier: Apache-2.0
// MPI as far as the recorder needs it: who this task is, and barriers to align clocks by. No MPI header, no MPI library.
#pragma once

#include "base/compiler.h"

namespace weir::hook {

// Barriers of MPI_COMM_WORLD made at MPI_Init and again at MPI_Finalize; 0: none.
extern WEIR_OWN int mpi_barriers;

}  // namespace weir::hook
