// SPDX-License-Identifier: Apache-2.0
// The data accesses of MPI-IO, called from Fortran: arguments are addresses, handles are numbers.
// In mpi_f08 the error may be absent. MPICH's mpi_f08 has other names for these, which end in the
// calls of C.
#include "hook/mpi/io.h"

using namespace weir::hook;

#define WEIR_ACCESS(symbol, op, place, offset, count, type, ...)                       \
  if (WEIR_LIKELY(!observed())) return WEIR_BOUND_REAL(symbol)(__VA_ARGS__);           \
  accessing({Op::op, Place::place, file_of_fortran(*file), offset, count, type}, [&] { \
    WEIR_BOUND_REAL(symbol)(__VA_ARGS__);                                              \
    return error_of(error);                                                            \
  });

#define WEIR_IO_last(symbol, op, place)                                                          \
  WEIR_OPTIONAL_HOOK(void, symbol, int* file, void* buffer, int* count, int* type, void* last,   \
                     int* error) {                                                               \
    WEIR_BOUND(symbol);                                                                          \
    WEIR_ACCESS(symbol, op, place, 0, *count, type_of_fortran(*type), file, buffer, count, type, \
                last, error)                                                                     \
  }
#define WEIR_IO_at_last(symbol, op, place)                                                        \
  WEIR_OPTIONAL_HOOK(void, symbol, int* file, int64_t* offset, void* buffer, int* count,          \
                     int* type, void* last, int* error) {                                         \
    WEIR_BOUND(symbol);                                                                           \
    WEIR_ACCESS(symbol, op, place, *offset, *count, type_of_fortran(*type), file, offset, buffer, \
                count, type, last, error)                                                         \
  }
#define WEIR_IO_begin(symbol, op, place)                                                         \
  WEIR_OPTIONAL_HOOK(void, symbol, int* file, void* buffer, int* count, int* type, int* error) { \
    WEIR_BOUND(symbol);                                                                          \
    WEIR_ACCESS(symbol, op, place, 0, *count, type_of_fortran(*type), file, buffer, count, type, \
                error)                                                                           \
  }
#define WEIR_IO_at_begin(symbol, op, place)                                                       \
  WEIR_OPTIONAL_HOOK(void, symbol, int* file, int64_t* offset, void* buffer, int* count,          \
                     int* type, int* error) {                                                     \
    WEIR_BOUND(symbol);                                                                           \
    WEIR_ACCESS(symbol, op, place, *offset, *count, type_of_fortran(*type), file, offset, buffer, \
                count, type, error)                                                               \
  }
#define WEIR_IO_end(symbol, op, place)                                                  \
  WEIR_OPTIONAL_HOOK(void, symbol, int* file, void* buffer, void* status, int* error) { \
    WEIR_BOUND(symbol);                                                                 \
    WEIR_ACCESS(symbol, op, place, 0, 0, 0, file, buffer, status, error)                \
  }

#define WEIR_MPI_IO(shape, op, name, NAME, place)   \
  WEIR_IO_##shape(mpi_file_##name##_, op, place)    \
  WEIR_IO_##shape(mpi_file_##name##__, op, place)   \
  WEIR_IO_##shape(mpi_file_##name, op, place)       \
  WEIR_IO_##shape(MPI_FILE_##NAME, op, place)       \
  WEIR_IO_##shape(mpi_file_##name##_f08_, op, place)
#include "hook/mpi/io.def"
#undef WEIR_MPI_IO
