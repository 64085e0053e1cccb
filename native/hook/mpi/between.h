// SPDX-License-Identifier: Apache-2.0
// Whether MPI is asked to carry blocks between nodes (layer global): then it begins with
// MPI_THREAD_MULTIPLE, since a thread of weir's makes its calls, and the ranks find each other when
// it has begun.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "layers/machinery/rules/rules.h"

namespace weir::hook {

// Rules, nodes and WEIR_BETWEEN together: all ranks of a job come to the same answer.
extern WEIR_OWN bool between_wanted;
void want_between(const rules::Rules& rules);

// One call of MPI_Init or MPI_Init_thread: what is asked for, and what the program is notified of
// what it got, as if it had got what it asked for.
class Level {
 public:
  // function: MPI_Init_thread in the program's language; without it nothing is raised.
  Level(const char* function, int required);
  bool raised() const { return raised_; }
  int asked() const;
  void granted(int* provided) const;

 private:
  int required_;
  bool raised_;
};

// [collective] After MPI has begun, and before it ends.
void begin_between(uintptr_t world, int rank, int ranks, bool open_mpi);
void end_between();
// The process ends.
void leave_between();

}  // namespace weir::hook
