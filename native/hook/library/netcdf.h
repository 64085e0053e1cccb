// SPDX-License-Identifier: Apache-2.0
// netCDF-C and PnetCDF: one interface in two spellings (nc_, ncmpi_), so one way to tell a
// variable's name and the bytes of a call.
#pragma once

#include "hook/library/library.h"
#include "hook/mpi/handles.h"

namespace weir::hook {

// What a call moves. one: an element; whole: all of the variable; counts: a hyperslab of so many
// along each dimension; pieces: several.
enum class Extent : uint8_t { one, whole, counts, pieces };
struct NetcdfAccess {
  Op op;
  wire::Function function;
  Library library;
  int file, variable;
  Extent extent;
  uint32_t element_bytes;  // in memory; 0: as in the file, or as `type` says
  const int64_t* counts = nullptr;
  const int64_t* const* piece_counts = nullptr;
  int64_t elements = -1;  // of `type`, MPI's; -1: not said
  Handle type = 0;
  int pieces = 0;
};
void end_netcdf_access(const CallSite& site, const NetcdfAccess& access, int result,
                       uint64_t begun);

// A call on a whole file. Its name is asked for before the call, which may close it.
uint32_t name_of_netcdf(const CallSite& site, Library library, int file);
void end_netcdf_call(Op op, wire::Function function, Library library, uint32_t name, int result,
                     uint64_t begun);

// Files come and go, and with them what their numbers mean.
void forget_netcdf_variables();

}  // namespace weir::hook

// The hook of a call on a file, which is its first parameter and called `file`. Used outside of
// namespaces, where weir::hook and weir::wire::Function are at hand.
#define WEIR_ON_FILE(library, op, symbol, parameters, ...)                                       \
  WEIR_OPTIONAL_HOOK(int, symbol, WEIR_LIST parameters) {                                        \
    WEIR_BOUND(symbol);                                                                          \
    const CallSite site(bound);                                                                  \
    const uint64_t begun = begin_library_call();                                                 \
    const uint32_t on = begun != 0 ? name_of_netcdf(site, Library::library, file) : 0;           \
    const int result = WEIR_BOUND_REAL(symbol)(__VA_ARGS__);                                     \
    if (begun != 0)                                                                              \
      end_netcdf_call(Op::op, Function::symbol, Library::library, on, result, begun);            \
    return result;                                                                               \
  }
