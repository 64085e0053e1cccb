// SPDX-License-Identifier: Apache-2.0
// Calls of netCDF-C and PnetCDF on whole files.
#include "hook/library/netcdf.h"
#include "hook/mpi/io.h"

namespace weir::hook {
namespace {

// The call opens or makes the file of this path.
uint32_t name_of_path(const char* path) {
  return path != nullptr ? trace::process().names().path_id(without_file_system(path)) : 0;
}

}  // namespace
}  // namespace weir::hook

using namespace weir::hook;
using weir::wire::Function;

#define WEIR_OPENS(library, op, symbol, parameters, ...)                                      \
  WEIR_OPTIONAL_HOOK(int, symbol, WEIR_LIST parameters) {                                     \
    WEIR_BOUND(symbol);                                                                       \
    const CallSite site(bound);                                                               \
    const uint64_t begun = begin_library_call();                                              \
    const int result = WEIR_BOUND_REAL(symbol)(__VA_ARGS__);                                  \
    forget_netcdf_variables();                                                                \
    if (begun != 0)                                                                           \
      end_netcdf_call(Op::op, Function::symbol, Library::library, name_of_path(path), result, \
                      begun);                                                                 \
    return result;                                                                            \
  }

WEIR_OPENS(netcdf, kLibraryCreate, nc_create, (const char* path, int mode, int* file), path, mode,
           file)
WEIR_OPENS(netcdf, kLibraryOpen, nc_open, (const char* path, int mode, int* file), path, mode, file)
WEIR_OPENS(netcdf, kLibraryCreate, nc_create_par,
           (const char* path, int mode, Handle communicator, Handle info, int* file), path, mode,
           communicator, info, file)
WEIR_OPENS(netcdf, kLibraryOpen, nc_open_par,
           (const char* path, int mode, Handle communicator, Handle info, int* file), path, mode,
           communicator, info, file)
WEIR_OPENS(netcdf, kLibraryCreate, nc__create,
           (const char* path, int mode, size_t size, size_t* chunk, int* file), path, mode, size,
           chunk, file)
WEIR_OPENS(netcdf, kLibraryOpen, nc__open, (const char* path, int mode, size_t* chunk, int* file),
           path, mode, chunk, file)
WEIR_OPENS(pnetcdf, kLibraryCreate, ncmpi_create,
           (Handle communicator, const char* path, int mode, Handle info, int* file), communicator,
           path, mode, info, file)
WEIR_OPENS(pnetcdf, kLibraryOpen, ncmpi_open,
           (Handle communicator, const char* path, int mode, Handle info, int* file), communicator,
           path, mode, info, file)

WEIR_ON_FILE(netcdf, kLibraryDefine, nc_enddef, (int file), file)
WEIR_ON_FILE(netcdf, kLibraryDefine, nc__enddef,
             (int file, size_t header, size_t align, size_t after, size_t records), file, header,
             align, after, records)
WEIR_ON_FILE(netcdf, kLibraryDefine, nc_redef, (int file), file)
WEIR_ON_FILE(netcdf, kLibrarySync, nc_sync, (int file), file)
WEIR_ON_FILE(netcdf, kLibraryClose, nc_close, (int file), file)
WEIR_ON_FILE(netcdf, kLibraryClose, nc_abort, (int file), file)
WEIR_ON_FILE(pnetcdf, kLibraryDefine, ncmpi_enddef, (int file), file)
WEIR_ON_FILE(pnetcdf, kLibraryDefine, ncmpi__enddef,
             (int file, int64_t header, int64_t align, int64_t after, int64_t records), file,
             header, align, after, records)
WEIR_ON_FILE(pnetcdf, kLibraryDefine, ncmpi_redef, (int file), file)
WEIR_ON_FILE(pnetcdf, kLibrarySync, ncmpi_begin_indep_data, (int file), file)
WEIR_ON_FILE(pnetcdf, kLibrarySync, ncmpi_end_indep_data, (int file), file)
WEIR_ON_FILE(pnetcdf, kLibrarySync, ncmpi_flush, (int file), file)
WEIR_ON_FILE(pnetcdf, kLibrarySync, ncmpi_sync, (int file), file)
WEIR_ON_FILE(pnetcdf, kLibrarySync, ncmpi_sync_numrecs, (int file), file)
WEIR_ON_FILE(pnetcdf, kLibraryClose, ncmpi_close, (int file), file)
WEIR_ON_FILE(pnetcdf, kLibraryClose, ncmpi_abort, (int file), file)
WEIR_ON_FILE(pnetcdf, kLibraryWait, ncmpi_wait, (int file, int count, int* requests, int* statuses),
             file, count, requests, statuses)
WEIR_ON_FILE(pnetcdf, kLibraryWait, ncmpi_wait_all,
             (int file, int count, int* requests, int* statuses), file, count, requests, statuses)
