// SPDX-License-Identifier: Apache-2.0
// Which run a program belongs to that is traced without `weir trace` or `weir env`, so that two
// runs into one directory stay apart. A run is what one mpirun (srun, ...) starts, on all nodes; or
// else what one shell script or command line starts.
#pragma once

#include "trace/trace_file.h"

namespace weir::preload {

// rank: as the launcher's environment has it, or -1; ranks: of the job, or 0.
trace::Launch find_launch(base::Text node, int rank, int ranks);
// Of a rank: a number that all ranks of its MPI_COMM_WORLD have and those of MPI_Comm_spawn have
// not; 0: the launcher has no such name.
uint64_t find_world();
// WEIR_LAUNCH for the programs that this one starts; open: as in trace::Launch. Without malloc:
// that of the program may not have begun.
void hand_on(uint64_t launch, bool open);

}  // namespace weir::preload
