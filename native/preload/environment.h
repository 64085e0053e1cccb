// SPDX-License-Identifier: Apache-2.0
// What the environment asks of this process. The variables are declared, with their meaning, in
// python/weir/capture.
#pragma once

#include "trace/trace_file.h"

namespace weir::preload {

struct Options {
  bool record;             // WEIR_TRACE_DIR is set and everything else makes sense
  const char* mistake;     // the variable that does not, or null
  trace::Settings settings;
  int64_t skew_ns;         // WEIR_CLOCK_SKEW_NS
  int mpi_barriers;        // WEIR_MPI_SYNC
  int mpi_wait_s;          // WEIR_MPI_WAIT_S
  bool mpi_events;         // WEIR_MPI
  bool quiet;              // WEIR_QUIET
  int rank, ranks;         // as the launcher's environment has them; -1 and 0 when it does not
  uint64_t world;          // find_world(), of a rank
};

// node: buffer for the name of the node, which outlives the result.
Options read_environment(char* node, size_t node_bytes);

}  // namespace weir::preload
