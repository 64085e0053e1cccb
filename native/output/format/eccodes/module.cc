// SPDX-License-Identifier: Apache-2.0
#include "output/format/eccodes/module.h"

#include <eccodes.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace weir::output::eccodes {
namespace {

// The last thing that ecCodes logged: the text of its codes alone ("Key/value not found") rarely
// tells what to do.
thread_local char logged[500];

void keep_log(const grib_context*, int level, const char* text) {
  if (level != GRIB_LOG_ERROR && level != GRIB_LOG_FATAL) return;
  // The first line has the cause, later ones repeat the call.
  if (logged[0] == '\0') std::snprintf(logged, sizeof logged, "%s", text);
}

// ecCodes would write to the model's stderr.
codes_context* context() {
  static codes_context* const own = [] {
    codes_context* made = codes_context_get_default();
    grib_context_set_logging_proc(made, keep_log);
    return made;
  }();
  return own;
}

bool done(int code, Why& why) {
  if (code == CODES_SUCCESS) return true;
  const char* text = codes_get_error_message(code);
  std::snprintf(why.text, sizeof why.text, "%s%s%s", text, logged[0] ? ": " : "", logged);
  return false;
}

codes_handle* begin(void* handle) {
  logged[0] = '\0';
  return static_cast<codes_handle*>(handle);
}

void* from_sample(const char* name, Why& why) {
  logged[0] = '\0';
  codes_handle* h = codes_grib_handle_new_from_samples(context(), name);
  if (!h) {
    std::snprintf(why.text, sizeof why.text, "no sample %s of GRIB in %s%s%s", name,
                  codes_samples_path(context()), logged[0] ? ": " : "", logged);
  }
  return h;
}

void* from_bytes(const void* message, size_t bytes, Why& why) {
  logged[0] = '\0';
  codes_handle* h = codes_handle_new_from_message_copy(context(), message, bytes);
  if (!h) std::snprintf(why.text, sizeof why.text, "not a message of GRIB: %s", logged);
  return h;
}

void free_handle(void* handle) { codes_handle_delete(static_cast<codes_handle*>(handle)); }

bool set_text(void* handle, const char* key, const char* value, Why& why) {
  size_t n = std::strlen(value);
  return done(codes_set_string(begin(handle), key, value, &n), why);
}

bool set_whole(void* handle, const char* key, int64_t value, Why& why) {
  return done(codes_set_long(begin(handle), key, value), why);
}

bool set_number(void* handle, const char* key, double value, Why& why) {
  return done(codes_set_double(begin(handle), key, value), why);
}

bool set_wholes(void* handle, const char* key, const int64_t* values, size_t n, Why& why) {
  const std::vector<long> list(values, values + n);
  return done(codes_set_long_array(begin(handle), key, list.data(), n), why);
}

bool set_numbers(void* handle, const char* key, const double* values, size_t n, Why& why) {
  return done(codes_set_double_array(begin(handle), key, values, n), why);
}

bool get_text(void* handle, const char* key, char* value, size_t bytes, Why& why) {
  return done(codes_get_string(begin(handle), key, value, &bytes), why);
}

bool get_whole(void* handle, const char* key, int64_t* value, Why& why) {
  long whole = 0;
  const int code = codes_get_long(begin(handle), key, &whole);
  *value = whole;
  return done(code, why);
}

bool get_wholes(void* handle, const char* key, int64_t* values, size_t most, size_t* n, Why& why) {
  codes_handle* h = begin(handle);
  if (!done(codes_get_size(h, key, n), why)) return false;
  std::vector<long> list(*n);
  if (!done(codes_get_long_array(h, key, list.data(), n), why)) return false;
  for (size_t i = 0; i < *n && i < most; i++) values[i] = list[i];
  return true;
}

bool get_numbers(void* handle, const char* key, double* values, size_t most, size_t* n, Why& why) {
  codes_handle* h = begin(handle);
  if (!done(codes_get_size(h, key, n), why)) return false;
  if (*n > most) {
    std::snprintf(why.text, sizeof why.text, "%s has %zu numbers, room is for %zu", key, *n, most);
    return false;
  }
  return done(codes_get_double_array(h, key, values, n), why);
}

bool offset(void* handle, const char* key, int64_t* bytes, Why& why) {
  size_t at = 0;
  const int code = grib_get_offset(begin(handle), key, &at);
  *bytes = static_cast<int64_t>(at);
  return done(code, why);
}

bool message(void* handle, const void** bytes, size_t* n, Why& why) {
  return done(codes_get_message(begin(handle), bytes, n), why);
}

constexpr Module kModule = {kModuleVersion, from_sample, from_bytes, free_handle, set_text,
                            set_whole,      set_number,  set_wholes, set_numbers, get_text,
                            get_whole,      get_wholes,  get_numbers, offset,     message};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Module* weir_eccodes_module() {
  return &kModule;
}

}  // namespace weir::output::eccodes
