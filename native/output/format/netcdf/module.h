// SPDX-License-Identifier: Apache-2.0
// weir-format-netcdf.so: what weir has the netCDF and HDF5 libraries do. It is loaded when a file
// of such a format is first wanted, with RTLD_LOCAL | RTLD_DEEPBIND, so that libraries of the model
// and ours do not meet. Such a module may allocate by another malloc than the rest of the program:
// across this boundary objects are only read, and texts and lists are written into the caller's
// memory. Calls are serialised by the caller: the libraries are not safe for threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "output/format/format.h"
#include "output/model/packing.h"

namespace weir::output::netcdf {

constexpr int kModuleVersion = 12;
constexpr const char* kModuleSymbol = "weir_netcdf_module";

enum class Kind { kCdf2 = 2, kNetcdf4 = 4, kCdf5 = 5 };

// Where a call says what went wrong: "cannot create x.nc: No space left on device".
struct Why {
  char text[1000];
};

// A variable of a file that is read.
struct Shape {
  Type type;
  bool is_unsigned;  // unsigned integers of the size of `type`
  bool known_type;   // false: one that weir does not have
  char type_name[256];  // netCDF's name of it
  bool over_time;
  // The first of `lengths` is a time that is not unlimited: records, or one of the field's axes.
  bool has_fixed_time;
  int rank;         // without unlimited time
  int64_t lengths[8];
  int64_t records;  // of the file; 1 without time
  char dimensions[8][256];  // their names, where they are of at most 255 bytes, else ""
  char units[256];          // likewise
  char standard_name[256];  // likewise
  char coordinates[1024];   // their names, where they are of at most 1023 bytes, else ""
  bool packed;
  double scale, offset;  // scale_factor, add_offset
  Fills fills;           // _FillValue, else netCDF's own of the type; missing_value
};

// One chunk (or contiguous variable) that is to have a place in a netCDF-4 file.
struct Piece {
  int variable;     // its index in the description
  int64_t start[8]; // first element, time first where the variable has it
  int64_t bytes;    // as stored; of a contiguous variable ignored
  int64_t address;  // out: byte in the file
};

struct Module {
  int version;

  // The file with definitions, attributes and coordinate values; an existing one is emptied and
  // keeps its inode. In netCDF-4 a variable's chunk has all dimensions, time first where the
  // variable has it; empty: contiguous.
  bool (*create)(const FileDescription& description, const char* path, Kind kind, Why& why);

  // Whether the file at `path` has the definitions and coordinates that one made anew would have;
  // *why says what differs.
  bool (*same)(const FileDescription& description, const char* path, Kind kind, Why& why);

  // Reading. Handles are null on failure.
  void* (*open)(const char* path, Why& why);
  bool (*find)(void* file, const char* variable, Shape& shape, Why& why);
  // `count` elements from `first` on of a record, in the type of the file and native byte order.
  bool (*read)(void* file, const char* variable, int64_t record, int64_t first, int64_t count,
               void* to, Why& why);
  void (*close)(void* file);

  // netCDF-4 growing by records: see grow.cc.
  void* (*grow)(const FileDescription& description, const char* path, bool sync, Why& why);
  // Room for `records` records: readers of the file do not see it before `commit`.
  bool (*extend)(void* growing, int64_t records, Why& why);
  // Places in the file for pieces, whose bytes the owners then write themselves.
  bool (*place)(void* growing, Piece* pieces, int64_t count, Why& why);
  // What was extended and placed becomes true in the file.
  bool (*commit)(void* growing, Why& why);
  // Where the file, opened anew, has not the metadata that were committed; *at -1: nowhere.
  // *least_bytes: how long it was then.
  bool (*find_damage)(void* growing, int descriptor, int64_t* least_bytes, int64_t* at, Why& why);
  // Forgets what was not committed, and frees the handle.
  void (*finish)(void* growing);
  // After a kill in the middle of a commit: the commit is completed from its journal. Nothing to do
  // is fine.
  bool (*recover)(const char* path, Why& why);
};

}  // namespace weir::output::netcdf
