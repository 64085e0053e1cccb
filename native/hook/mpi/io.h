// SPDX-License-Identifier: Apache-2.0
// MPI-IO in the trace: each call of MPI_File_* that the program, or a library above it, makes is a
// record of layer mpi_io. Which files are open and how they are viewed is remembered by handle;
// calls of files that were opened unseen have no name.
#pragma once

#include "hook/mpi/handles.h"
#include "hook/observe.h"

namespace weir::hook {

// Whose position an access is at: given by the call, the rank's own, the one that ranks share,
// none.
enum class Place : uint8_t { given, own, shared, none };

struct FileAccess {
  Op op;
  Place place;
  Handle file;
  int64_t offset;  // where given: in units of the view's elementary type
  int64_t count;
  Handle type;
};

// An open file. view_bytes: of the elementary type where the view has no holes, so that offsets are
// known; 0: it has.
struct MpiFile {
  Handle handle;
  uint32_t name;
  uint32_t view_bytes;
  int64_t displacement;
};

// The call is to be recorded: it is not part of another one of MPI's.
WEIR_INLINE bool observed() { return WEIR_UNLIKELY(recording()) && mpi_depth == 0; }

// Not known: null. A file that no place is left for is not remembered.
MpiFile* mpi_file(Handle file);
MpiFile* remember_mpi_file(Handle file, uint32_t name);
void forget_mpi_file(MpiFile* file);

Handle file_of_fortran(int file);
Handle type_of_fortran(int type);

// Byte in the file of an access; asked for before it begins.
uint64_t place_of(const FileAccess& access);
void record_access(const FileAccess& access, uint64_t at, int error, Span span);
// Any other call. error: its result.
void keep_file_call(Op op, uint32_t name, int error, Span span, uint64_t offset, uint64_t size);

// real makes the call and returns its error.
template <typename Real>
Span timed(int& error, Real real) {
  ++mpi_depth;
  const uint64_t start = base::ticks();
  error = real();
  const uint64_t end = base::ticks();
  --mpi_depth;
  return {start, end};
}

template <typename Real>
int accessing(const FileAccess& access, Real real) {
  const uint64_t at = place_of(access);
  int error = 0;
  const Span span = timed(error, real);
  record_access(access, at, error, span);
  return error;
}

// After a successful open: what the program asked for (info) and what it got, reported by the first
// rank for all.
struct OpenedMpiFile {
  Handle communicator, info, file;
  const char* path;
  int mode;
};
void record_opened(const OpenedMpiFile& what, int error, Span span);

// A hint of an MPI_Info that is none names nothing.
bool is_no_info(Handle info);
// A path as ROMIO takes it may begin with the name of a file system that it knows.
const char* without_file_system(const char* name);

// A Fortran name as C has it; null when the room is too small.
// A path, and the name of a file system before it.
inline constexpr size_t kFortranPathBytes = 4096 + 256;
const char* text_of_fortran(const char* name, size_t length, char* room, size_t size);

// An error argument of Fortran. Absent (mpi_f08) means that MPI would have ended the program.
inline int error_of(const int* error) { return error == nullptr ? 0 : *error; }

}  // namespace weir::hook
