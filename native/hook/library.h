// SPDX-License-Identifier: Apache-2.0
// Calls of PnetCDF, netCDF-C and HDF5 on their data sets. A process may hold several copies of such a library (each Python package brings
// its own), whose handles mean nothing to each other: a call reaches the copy that its caller was linked to, and that copy alone is asked
// for names and sizes.
#pragma once

#include "hook/observe.h"

namespace weir::hook {

// One loaded copy of a library. It stays loaded.
struct LibraryCopy {
  void* base;     // where it is loaded; stored last, null: none
  void* handle;   // of dlopen
  uint32_t taken;
};

// One place that calls, and where it is bound to. An indirect call reaches several functions from one place.
struct CallSite {
  const char* symbol;  // a literal: it is told by its address
  const void* caller;  // the return address; stored last
  void* function;      // null: the library is not there
  LibraryCopy* copy;
};

CallSite find_call_site(const char* symbol, Library library, const void* caller);

// A function of the copy; null when it has none of that name.
void* function_of(const LibraryCopy* copy, const char* name);
// The same, of the copy that the place is bound to: what is asked of the library about a call.
template <typename Function>
Function ask(const CallSite& site, const char* name) {
  return reinterpret_cast<Function>(function_of(site.copy, name));
}

// Calls of these libraries that this thread is within: the outermost is the program's.
extern WEIR_OWN WEIR_THREAD int library_depth;

// The start of a call that is to be recorded, or 0. After end_library_call the next one may be.
WEIR_INLINE uint64_t begin_library_call() {
  if (WEIR_LIKELY(!recording()) || library_depth != 0) return 0;
  ++library_depth;
  const uint64_t now = os::ticks();
  return now != 0 ? now : 1;
}
struct LibraryCall {
  Op op;
  Layer layer;
  uint32_t name;
  uint64_t bytes;
  bool failed;
};
void end_library_call(const LibraryCall& call, Span span);

// "library:path:variable", the path made absolute.
uint32_t name_of_variable(const char* library, const char* path, const char* variable);

}  // namespace weir::hook

// In a hook: the real function of the caller's copy.
#define WEIR_CALL_SITE(symbol, library) \
  weir::hook::find_call_site(#symbol, weir::hook::Library::library, __builtin_return_address(0))
#define WEIR_LIBRARY_REAL(symbol, site) reinterpret_cast<decltype(&hook_##symbol)>((site).function)
