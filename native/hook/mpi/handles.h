// SPDX-License-Identifier: Apache-2.0
// What all hooks of MPI need: its functions under their profiling names (PMPI_), so that no other
// tool counts what weir asks, and its handles as the ABI passes them. No MPI header: which
// implementation it is shows at run time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hook/binding.h"
#include "hook/real.h"
#include "wire/format.h"

namespace weir::hook {

// A pointer for Open MPI, an int for MPICH and libraries derived from it, of which only the low
// half is meant; files are pointers in both. Both fit and travel in one register.
using Handle = uintptr_t;

inline constexpr Handle kMpichWorld = 0x44000000, kMpichSelf = 0x44000001, kMpichByte = 0x4c00010d;
inline constexpr Handle kMpichNoInfo = 0x1c000000, kMpichErrorsReturn = 0x54000001;
inline constexpr size_t kStatusBytes = 128;  // more than any MPI_Status

// A function of MPI, looked for anew at each call: where that matters, use Profiled. Null when it
// is nowhere.
template <typename Function>
Function profiled(const char* name) {
  return reinterpret_cast<Function>(find_function(name, Library::mpi));
}

// The same, remembered once it is found: constinit Profiled<int(Handle, int*)>
// type_size{"PMPI_Type_size"}.
template <typename Signature>
struct Profiled {
  const char* name;
  void* found = nullptr;

  Signature* get() {
    void* function = base::load_relaxed(&found);
    if (WEIR_UNLIKELY(function == nullptr))
      base::store_relaxed(&found, function = find_function(name, Library::mpi));
    return reinterpret_cast<Signature*>(function);
  }
};

// The address of an object of Open MPI's, "ompi_mpi_comm_world"; 0: there is none, it is another
// implementation.
Handle open_mpi_object(const char* name);

// Text of MPI_Get_library_version; empty when MPI does not say. The text stays.
const char* mpi_version();

// To standard error, whole, unless WEIR_QUIET forbids it.
void say_unless_quiet(const char* message);

// Whose handles these are. kOther: of an implementation that weir does not know, so they mean
// nothing.
wire::MpiKind mpi_kind();

// Calls of MPI that this thread is within: the outermost alone is the program's. Fortran's wrappers
// end in the calls of C, files and windows in collectives.
extern WEIR_OWN WEIR_THREAD int mpi_depth;

// Fortran's handles. converter: "PMPI_Comm_f2c", or "PMPI_Comm_c2f". MPICH's are the same in both
// languages, but for files, whose converters are called always.
Handle from_fortran(const char* converter, int handle);
int to_fortran(const char* converter, Handle handle);
// The same with a converter that is remembered.
Handle from_fortran(Profiled<Handle(int)>& converter, int handle);

// Bytes of data of a type; -1 when MPI does not say.
int64_t bytes_of_type(Handle type);

}  // namespace weir::hook
