// SPDX-License-Identifier: Apache-2.0
// MPI as far as the recorder needs it: who this rank is, barriers to align clocks by, and what
// ranks wait for. No MPI header, no MPI library.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

namespace weir::hook {

// Barriers of MPI_COMM_WORLD made at MPI_Init and again at MPI_Finalize; 0: none. How long one at
// MPI_Init waits for all ranks; 0: no limit.
extern WEIR_OWN int mpi_barriers, mpi_wait_s;

// Whether collectives, waits and messages are recorded (mpi_sync.h), and whether it is so now:
// between MPI_Init and MPI_Finalize.
extern WEIR_OWN bool mpi_events_wanted;
extern WEIR_OWN uint32_t mpi_events;
void begin_mpi_events(uintptr_t world, int rank, int ranks);
// Whether they were.
bool end_mpi_events();
// MPI_Finalize, from its call until all have come: the world's last collective, in which the others
// wait for whoever comes last.
void record_finalize(uintptr_t world, uint64_t came, uint64_t met);

}  // namespace weir::hook
