// SPDX-License-Identifier: Apache-2.0
// Definitions of netCDF-C and PnetCDF: dimensions, variables and how they are stored, attributes.
// Each is recorded with the file alone: there are tens to thousands of them in front of the output.
#include "hook/library/netcdf.h"

using namespace weir::hook;
using weir::wire::Function;

#define WEIR_DEFINES(library, symbol, ...) \
  WEIR_ON_FILE(library, kLibraryDefine, symbol, __VA_ARGS__)

WEIR_DEFINES(netcdf, nc_def_dim, (int file, const char* name, size_t length, int* dimension), file,
             name, length, dimension)
WEIR_DEFINES(netcdf, nc_def_var,
             (int file, const char* name, int type, int count, const int* dimensions,
              int* variable),
             file, name, type, count, dimensions, variable)
WEIR_DEFINES(netcdf, nc_def_var_chunking,
             (int file, int variable, int storage, const size_t* lengths), file, variable, storage,
             lengths)
WEIR_DEFINES(netcdf, nc_def_var_deflate,
             (int file, int variable, int shuffle, int deflate, int level), file, variable,
             shuffle, deflate, level)
WEIR_DEFINES(netcdf, nc_def_var_fill, (int file, int variable, int none, const void* value), file,
             variable, none, value)
WEIR_DEFINES(netcdf, nc_def_var_filter,
             (int file, int variable, unsigned filter, size_t count, const unsigned* values), file,
             variable, filter, count, values)
WEIR_DEFINES(netcdf, nc_def_var_fletcher32, (int file, int variable, int checksum), file, variable,
             checksum)
WEIR_DEFINES(netcdf, nc_def_var_endian, (int file, int variable, int order), file, variable, order)
WEIR_DEFINES(netcdf, nc_def_grp, (int file, const char* name, int* group), file, name, group)
WEIR_DEFINES(netcdf, nc_set_fill, (int file, int mode, int* before), file, mode, before)
WEIR_DEFINES(netcdf, nc_var_par_access, (int file, int variable, int access), file, variable,
             access)
WEIR_DEFINES(pnetcdf, ncmpi_def_dim, (int file, const char* name, int64_t length, int* dimension),
             file, name, length, dimension)
WEIR_DEFINES(pnetcdf, ncmpi_def_var,
             (int file, const char* name, int type, int count, const int* dimensions,
              int* variable),
             file, name, type, count, dimensions, variable)
WEIR_DEFINES(pnetcdf, ncmpi_def_var_fill, (int file, int variable, int none, const void* value),
             file, variable, none, value)
WEIR_DEFINES(pnetcdf, ncmpi_set_fill, (int file, int mode, int* before), file, mode, before)
WEIR_DEFINES(pnetcdf, ncmpi_fill_var_rec, (int file, int variable, int64_t record), file, variable,
             record)

#define WEIR_RENAMES(library, begin)                                                             \
  WEIR_DEFINES(library, begin##_rename_dim, (int file, int which, const char* name), file, which, \
               name)                                                                             \
  WEIR_DEFINES(library, begin##_rename_var, (int file, int which, const char* name), file, which, \
               name)                                                                             \
  WEIR_DEFINES(library, begin##_rename_att,                                                      \
               (int file, int variable, const char* before, const char* name), file, variable,   \
               before, name)                                                                     \
  WEIR_DEFINES(library, begin##_del_att, (int file, int variable, const char* name), file,       \
               variable, name)
WEIR_RENAMES(netcdf, nc)
WEIR_RENAMES(pnetcdf, ncmpi)

// Counts are size_t in the one and MPI_Offset in the other: of 64 bits in both.
#define WEIR_ATTRIBUTE(library, symbol)                                                          \
  WEIR_DEFINES(library, symbol,                                                                  \
               (int file, int variable, const char* name, int type, int64_t count,               \
                const void* values),                                                             \
               file, variable, name, type, count, values)
#define WEIR_TEXT_ATTRIBUTE(library, symbol)                                                     \
  WEIR_DEFINES(library, symbol,                                                                  \
               (int file, int variable, const char* name, int64_t count, const void* text), file, \
               variable, name, count, text)
#define WEIR_ATTRIBUTES(library, begin)                                                          \
  WEIR_ATTRIBUTE(library, begin)                                                                 \
  WEIR_TEXT_ATTRIBUTE(library, begin##_text)                                                     \
  WEIR_ATTRIBUTE(library, begin##_schar)                                                         \
  WEIR_ATTRIBUTE(library, begin##_uchar)                                                         \
  WEIR_ATTRIBUTE(library, begin##_short)                                                         \
  WEIR_ATTRIBUTE(library, begin##_ushort)                                                        \
  WEIR_ATTRIBUTE(library, begin##_int)                                                           \
  WEIR_ATTRIBUTE(library, begin##_uint)                                                          \
  WEIR_ATTRIBUTE(library, begin##_long)                                                          \
  WEIR_ATTRIBUTE(library, begin##_float)                                                         \
  WEIR_ATTRIBUTE(library, begin##_double)                                                        \
  WEIR_ATTRIBUTE(library, begin##_longlong)                                                      \
  WEIR_ATTRIBUTE(library, begin##_ulonglong)
WEIR_ATTRIBUTES(netcdf, nc_put_att)
WEIR_ATTRIBUTE(netcdf, nc_put_att_ubyte)
WEIR_TEXT_ATTRIBUTE(netcdf, nc_put_att_string)
WEIR_ATTRIBUTES(pnetcdf, ncmpi_put_att)
