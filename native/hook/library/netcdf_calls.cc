// SPDX-License-Identifier: Apache-2.0
// The data accesses of netCDF-C and PnetCDF, made from wire/netcdf.def.
#include "hook/library/netcdf.h"

using namespace weir::hook;
using weir::wire::Function;

// Each shape: its parameters between variable and data, their names, what they say of the extent.
#define WEIR_TAKES_var
#define WEIR_TAKES_var1 const int64_t *index,
#define WEIR_TAKES_vara const int64_t *start, const int64_t *count,
#define WEIR_TAKES_vars const int64_t *start, const int64_t *count, const int64_t *stride,
#define WEIR_TAKES_varm \
  const int64_t *start, const int64_t *count, const int64_t *stride, const int64_t *map,
#define WEIR_TAKES_varn int pieces, const int64_t *const *starts, const int64_t *const *counts,
#define WEIR_GIVES_var
#define WEIR_GIVES_var1 index,
#define WEIR_GIVES_vara start, count,
#define WEIR_GIVES_vars start, count, stride,
#define WEIR_GIVES_varm start, count, stride, map,
#define WEIR_GIVES_varn pieces, starts, counts,
#define WEIR_SAYS_var access.extent = Extent::whole;
#define WEIR_SAYS_var1 access.extent = Extent::one;
#define WEIR_SAYS_vara access.extent = Extent::counts, access.counts = count;
#define WEIR_SAYS_vars WEIR_SAYS_vara
#define WEIR_SAYS_varm WEIR_SAYS_vara
#define WEIR_SAYS_varn \
  access.extent = Extent::pieces, access.pieces = pieces, access.piece_counts = counts;

#define WEIR_CALLED(library, op, symbol, shape, bytes, says, ...)                             \
  const CallSite site(bound);                                                                 \
  const uint64_t begun = begin_library_call();                                                \
  const int result = WEIR_BOUND_REAL(symbol)(file, variable, WEIR_GIVES_##shape __VA_ARGS__); \
  if (WEIR_LIKELY(begun == 0)) return result;                                                 \
  NetcdfAccess access{Op::op,      Function::symbol, Library::library, file,      \
                      variable,    Extent::one,                  bytes};                      \
  WEIR_SAYS_##shape says end_netcdf_access(site, access, result, begun);                      \
  return result;

#define WEIR_TYPED_plain(library, op, symbol, shape, bytes)                                \
  WEIR_OPTIONAL_HOOK(int, symbol, int file, int variable, WEIR_TAKES_##shape void* data) { \
    WEIR_BOUND(symbol);                                                                    \
    WEIR_CALLED(library, op, symbol, shape, bytes, , data)                                 \
  }
#define WEIR_TYPED_request(library, op, symbol, shape, bytes)                            \
  WEIR_OPTIONAL_HOOK(int, symbol, int file, int variable, WEIR_TAKES_##shape void *data, \
                     int *request) {                                                     \
    WEIR_BOUND(symbol);                                                                  \
    WEIR_CALLED(library, op, symbol, shape, bytes, , data, request)                      \
  }

// Of any type: netCDF-C's has the variable's own type in memory, PnetCDF's says MPI's type and how
// many of it.
#define WEIR_OF_BUFFER access.elements = elements, access.type = type;
#define WEIR_ANY_netcdf_plain(op, symbol, shape) WEIR_TYPED_plain(netcdf, op, symbol, shape, 0)
#define WEIR_ANY_pnetcdf_plain(op, symbol, shape)                                        \
  WEIR_OPTIONAL_HOOK(int, symbol, int file, int variable, WEIR_TAKES_##shape void *data, \
                     int64_t elements, Handle type) {                                    \
    WEIR_BOUND(symbol);                                                                  \
    WEIR_CALLED(pnetcdf, op, symbol, shape, 0, WEIR_OF_BUFFER, data, elements, type)     \
  }
#define WEIR_ANY_pnetcdf_request(op, symbol, shape)                                           \
  WEIR_OPTIONAL_HOOK(int, symbol, int file, int variable, WEIR_TAKES_##shape void *data,      \
                     int64_t elements, Handle type, int *request) {                           \
    WEIR_BOUND(symbol);                                                                       \
    WEIR_CALLED(pnetcdf, op, symbol, shape, 0, WEIR_OF_BUFFER, data, elements, type, request) \
  }

#define WEIR_NETCDF(number, library, op, begin, end, shape, form)          \
  WEIR_TYPED_##form(library, op, begin##_text##end, shape, 1)              \
  WEIR_TYPED_##form(library, op, begin##_schar##end, shape, 1)             \
  WEIR_TYPED_##form(library, op, begin##_uchar##end, shape, 1)             \
  WEIR_TYPED_##form(library, op, begin##_short##end, shape, 2)             \
  WEIR_TYPED_##form(library, op, begin##_ushort##end, shape, 2)            \
  WEIR_TYPED_##form(library, op, begin##_int##end, shape, 4)               \
  WEIR_TYPED_##form(library, op, begin##_uint##end, shape, 4)              \
  WEIR_TYPED_##form(library, op, begin##_long##end, shape, 8)              \
  WEIR_TYPED_##form(library, op, begin##_float##end, shape, 4)             \
  WEIR_TYPED_##form(library, op, begin##_double##end, shape, 8)            \
  WEIR_TYPED_##form(library, op, begin##_longlong##end, shape, 8)          \
  WEIR_TYPED_##form(library, op, begin##_ulonglong##end, shape, 8)         \
  WEIR_ANY_##library##_##form(op, begin##end, shape)
#include "wire/netcdf.def"
#undef WEIR_NETCDF

// A second name for netCDF-C's uchar.
WEIR_TYPED_plain(netcdf, kLibraryPut, nc_put_var_ubyte, var, 1)
WEIR_TYPED_plain(netcdf, kLibraryPut, nc_put_var1_ubyte, var1, 1)
WEIR_TYPED_plain(netcdf, kLibraryPut, nc_put_vara_ubyte, vara, 1)
WEIR_TYPED_plain(netcdf, kLibraryPut, nc_put_vars_ubyte, vars, 1)
WEIR_TYPED_plain(netcdf, kLibraryPut, nc_put_varm_ubyte, varm, 1)
WEIR_TYPED_plain(netcdf, kLibraryGet, nc_get_var_ubyte, var, 1)
WEIR_TYPED_plain(netcdf, kLibraryGet, nc_get_var1_ubyte, var1, 1)
WEIR_TYPED_plain(netcdf, kLibraryGet, nc_get_vara_ubyte, vara, 1)
WEIR_TYPED_plain(netcdf, kLibraryGet, nc_get_vars_ubyte, vars, 1)
WEIR_TYPED_plain(netcdf, kLibraryGet, nc_get_varm_ubyte, varm, 1)
