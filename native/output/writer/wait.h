// SPDX-License-Identifier: Apache-2.0
// Waits for other ranks that end: with what was waited for, or after `limit_s` in which nothing
// came. A rank that was killed is found out so, where the launcher does not end the job.
#pragma once

#include <mpi.h>

#include <string>

#include "output/core/status.h"

namespace weir::output::writer {

// The result of an MPI call, in words.
Status from_mpi(int code, const char* call);

// Complete the request. what: for the message, such as "the guard's answer".
Status wait(MPI_Request* request, const char* what, double limit_s, MPI_Status* status = nullptr);
// A message of this tag, from whomever.
Status probe(int tag, MPI_Comm comm, const char* what, double limit_s, MPI_Status* status);

// A non-blocking barrier of an output step: ended() when the rank's part of the step has its place,
// pass() before anything of the next step gets one.
class StepGate {
 public:
  Status ended(MPI_Comm comm, double limit_s);
  Status pass(double limit_s);

 private:
  MPI_Request open_ = MPI_REQUEST_NULL;
};

}  // namespace weir::output::writer
