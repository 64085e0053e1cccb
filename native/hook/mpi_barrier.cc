// SPDX-License-Identifier: Apache-2.0
// MPI_Barrier, for files that tasks on several nodes share: what a task wrote before it is in the file, and what a task reads after
// it is looked at anew. Without such files the call goes straight through.
#include "cache/between.h"
#include "hook/observe.h"
#include "stack/process.h"

namespace weir::hook {
namespace {

WEIR_THREAD int depth = 0;  // Fortran's wrappers may end in MPI_Barrier

template <typename Real>
void passing(Real real) {
  const bool shared = depth == 0 && base::load_relaxed(&cache::shared_between_nodes) != 0;
  if (WEIR_LIKELY(!shared)) return real();
  ++depth;
  stack::flush_shared();
  real();
  base::fetch_add(&cache::barriers, 1u);
  --depth;
}

}  // namespace
}  // namespace weir::hook

using namespace weir::hook;

WEIR_HOOK(int, MPI_Barrier, uintptr_t communicator) {
  int result = 0;
  passing([&] { result = WEIR_REAL(MPI_Barrier)(communicator); });
  return result;
}

#define WEIR_FORTRAN_BARRIER(symbol)                     \
  WEIR_HOOK(void, symbol, void* communicator, int* error) { \
    passing([&] { WEIR_REAL(symbol)(communicator, error); }); \
  }
WEIR_FORTRAN_BARRIER(mpi_barrier_)
WEIR_FORTRAN_BARRIER(mpi_barrier__)
WEIR_FORTRAN_BARRIER(mpi_barrier)
WEIR_FORTRAN_BARRIER(MPI_BARRIER)
WEIR_FORTRAN_BARRIER(mpi_barrier_f08_)
