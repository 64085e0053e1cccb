// SPDX-License-Identifier: Apache-2.0
// What the transport needs of the program's MPI, found at run time by who calls begin(). Handles
// are passed as they come: a pointer for Open MPI, an int for MPICH and libraries derived from it;
// both fit and travel in one register.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace weir::remote {

using Handle = uintptr_t;

struct Mpi {
  Handle world, byte, errors_return;
  int any_source;
  int rank, ranks;
  int (*gather)(const void*, int, Handle, void*, int, Handle, Handle communicator,
                Handle* request);                        // MPI_Iallgather
  int (*barrier)(Handle communicator, Handle* request);  // MPI_Ibarrier
  int (*send)(const void*, int, Handle type, int to, int tag, Handle communicator,
              Handle* request);  // MPI_Isend
  int (*receive)(void*, int, Handle type, int from, int tag, Handle communicator,
                 Handle* request);  // MPI_Irecv
  int (*test)(Handle* request, int* done, void* status);
  int (*cancel)(Handle* request);
  int (*duplicate)(Handle communicator, Handle* made);
  int (*handle_errors)(Handle communicator, Handle handler);  // MPI_Comm_set_errhandler
  int (*free)(Handle* communicator);
};

inline constexpr size_t kStatusBytes = 128;  // more than any MPI_Status

// One test of a request.
enum class Tested { kPending, kDone, kFailed };
inline Tested tested(const Mpi& mpi, Handle* request) {
  alignas(16) char status[kStatusBytes];
  int done = 0;
  if (mpi.test(request, &done, status) != 0) return Tested::kFailed;
  return done != 0 ? Tested::kDone : Tested::kPending;
}

}  // namespace weir::remote
