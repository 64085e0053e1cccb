// SPDX-License-Identifier: Apache-2.0
// weir-format-netcdf.so: what weir has the netCDF and HDF5 libraries do. It is loaded when a file of such a format is first wanted, with
// RTLD_LOCAL | RTLD_DEEPBIND, so that libraries of the model and ours do not meet. Such a module may allocate by another malloc than the rest
// of the program: across this boundary objects are only read, and texts and lists are written into the caller's memory.
// Calls are serialised by the caller: the libraries are not safe for threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "output/format/format.h"

namespace weir::output::netcdf {

constexpr int kModuleVersion = 1;
constexpr const char* kModuleSymbol = "weir_netcdf_module";

enum class Kind { kCdf2 = 2, kNetcdf4 = 4, kCdf5 = 5 };

// Where a call says what went wrong: "cannot create x.nc: No space left on device".
struct Why {
  char text[1000];
};

// A variable of a file that is read.
struct Shape {
  Type type;
  bool known_type;  // false: one that weir does not have
  bool over_time;
  int rank;         // without time
  int64_t lengths[8];
  int64_t records;  // of the file; 1 without time
};

struct Module {
  int version;

  // The file with definitions, attributes and coordinate values; an existing one is emptied and keeps its inode.
  bool (*create)(const FileDescription& description, const char* path, Kind kind, Why& why);

  // Reading. Handles are null on failure.
  void* (*open)(const char* path, Why& why);
  bool (*find)(void* file, const char* variable, Shape& shape, Why& why);
  // `count` elements from `first` on of a record, in the type of the file and native byte order.
  bool (*read)(void* file, const char* variable, int64_t record, int64_t first, int64_t count, void* to, Why& why);
  void (*close)(void* file);
};

}  // namespace weir::output::netcdf
