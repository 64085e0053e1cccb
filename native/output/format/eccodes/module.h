// SPDX-License-Identifier: Apache-2.0
// weir-format-grib.so: what weir has ecCodes do. It is loaded when a file of GRIB is
// first wanted, with RTLD_LOCAL | RTLD_DEEPBIND, so that libraries of the model and ours do not
// meet. Nothing that one side allocates is freed by the other. Calls are serialised by the caller.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::output::eccodes {

constexpr int kModuleVersion = 2;
constexpr const char* kModuleSymbol = "weir_eccodes_module";

// What ecCodes said of a call that returned false or null, its log with it.
struct Why {
  char text[1000];
};

struct Module {
  int version;

  // A message as a handle: of a sample ("GRIB2"), or a copy of the bytes of one. Null on failure.
  void* (*from_sample)(const char* name, Why& why);
  void* (*from_bytes)(const void* message, size_t bytes, Why& why);
  void (*free)(void* handle);

  bool (*set_text)(void* handle, const char* key, const char* value, Why& why);
  bool (*set_whole)(void* handle, const char* key, int64_t value, Why& why);
  bool (*set_number)(void* handle, const char* key, double value, Why& why);
  bool (*set_wholes)(void* handle, const char* key, const int64_t* values, size_t n, Why& why);
  bool (*set_numbers)(void* handle, const char* key, const double* values, size_t n, Why& why);

  bool (*get_text)(void* handle, const char* key, char* value, size_t bytes, Why& why);
  bool (*get_whole)(void* handle, const char* key, int64_t* value, Why& why);
  // All of a list; *n is its length, at most `most` are written.
  bool (*get_wholes)(void* handle, const char* key, int64_t* values, size_t most, size_t* n,
                     Why& why);
  bool (*get_numbers)(void* handle, const char* key, double* values, size_t most, size_t* n,
                      Why& why);
  // Where a key's bytes begin in the message.
  bool (*offset)(void* handle, const char* key, int64_t* bytes, Why& why);
  // The message, until the handle changes or goes.
  bool (*message)(void* handle, const void** bytes, size_t* n, Why& why);
};

}  // namespace weir::output::eccodes
