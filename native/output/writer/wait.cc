// SPDX-License-Identifier: Apache-2.0
#include "output/writer/wait.h"

#include "output/transport/patience.h"

namespace weir::output::writer {
namespace {

Status lost(const char* what, double limit_s) {
  return {WEIR_E_LOST, std::string(what) + " did not come within " +
                           std::to_string(static_cast<int>(limit_s)) +
                           " s: a rank was killed or is stopped; what was written before is in "
                           "the files"};
}

}  // namespace

Status from_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {WEIR_E_MPI, std::string(call) + ": " + std::string(text, static_cast<size_t>(length))};
}

Status wait(MPI_Request* request, const char* what, double limit_s, MPI_Status* status) {
  Patience patience(limit_s);
  for (;;) {
    int done = 0;
    WEIR_TRY(from_mpi(MPI_Test(request, &done, status ? status : MPI_STATUS_IGNORE), what));
    if (done) return {};
    if (!patience.wait()) return lost(what, limit_s);
  }
}

Status probe(int tag, MPI_Comm comm, const char* what, double limit_s, MPI_Status* status) {
  Patience patience(limit_s);
  for (;;) {
    int there = 0;
    WEIR_TRY(from_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &there, status), what));
    if (there) return {};
    if (!patience.wait()) return lost(what, limit_s);
  }
}

// A rank that had nothing to place has not passed the gate of the step before.
Status StepGate::ended(MPI_Comm comm, double limit_s) {
  WEIR_TRY(pass(limit_s));
  return from_mpi(MPI_Ibarrier(comm, &open_), "MPI_Ibarrier");
}

Status StepGate::pass(double limit_s) {
  if (open_ == MPI_REQUEST_NULL) return {};
  return wait(&open_, "the end of the step on another collector", limit_s);
}

}  // namespace weir::output::writer
