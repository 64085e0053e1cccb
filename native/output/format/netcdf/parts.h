// SPDX-License-Identifier: Apache-2.0
// The parts of the module, which module.cc puts together. What each does: module.h.
#pragma once

#include "output/format/netcdf/module.h"

namespace weir::output::netcdf {

bool create(const FileDescription& description, const char* path, Kind kind, Why& why);

// The same in memory: definitions and coordinates; 0 and the open file, or netCDF's error and what
// it was at.
int define_in_memory(const FileDescription& description, Kind kind, int* file, std::string* doing);
// Between definitions and image of a file that was created with kOwnScales. False: HDF5 failed.
bool attach_scales(const FileDescription& description);
bool same(const FileDescription& description, const char* path, Kind kind, Why& why);

void* open_file(const char* path, Why& why);
bool find(void* file, const char* variable, Shape& shape, Why& why);
bool read(void* file, const char* variable, int64_t record, int64_t first, int64_t count, void* to,
          Why& why);
void close_file(void* file);

void* grow(const FileDescription& description, const char* path, bool sync, Why& why);
bool extend(void* growing, int64_t records, Why& why);
bool place(void* growing, Piece* pieces, int64_t count, Why& why);
bool commit(void* growing, Why& why);
bool find_damage(void* growing, int descriptor, int64_t* least_bytes, int64_t* at, Why& why);
void finish(void* growing);
bool recover(const char* path, Why& why);

// HDF5's filter 32015 for this process, unless a plugin has it. Once.
void register_zstd();

// "<what> <object>: <cause>"; false, to be returned.
bool say(Why& why, const char* what, const char* object, const char* cause);
// The same of an errno, and what to do where there is no room.
bool say_errno(Why& why, const std::string& what, const char* path, int error);

}  // namespace weir::output::netcdf
