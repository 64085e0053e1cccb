// SPDX-License-Identifier: Apache-2.0
// Calls of PnetCDF, netCDF-C and HDF5 on their data sets. A process may hold several copies of such
// a library (each Python package brings its own), whose handles mean nothing to each other: a call
// goes to what its caller was bound to, and the copy behind it is asked for names and sizes: the
// library itself, also where another tool's wrapper stands in front of it.
#pragma once

#include "hook/binding.h"
#include "hook/object.h"
#include "hook/observe.h"
#include "hook/redirect.h"
#include "wire/functions.h"

namespace weir::hook {

// The library that a function belongs to: what defines it may be another tool's wrapper, and then
// it is the next one in the order of loading. False: there is none.
bool find_library_behind(const void* target, Library library, Object& found);

// One loaded copy of a library.
struct LibraryCopy {
  Object object;
  uint32_t unloadings;  // when it was found; stored last, 0: never
  uint32_t taken;
};

// What a call is bound to.
class CallSite {
 public:
  explicit CallSite(const Bound& bound) : binding_(bound.binding()) {}

  // Null: there is no room for it.
  LibraryCopy* copy() const {
    auto* known = static_cast<LibraryCopy*>(base::load(&binding_.copy));
    if (WEIR_LIKELY(known != nullptr &&
                    base::load(&known->unloadings) == base::load_relaxed(&unloadings)))
      return known;
    return find_copy();
  }

 private:
  WEIR_COLD LibraryCopy* find_copy() const;

  Binding& binding_;
};

// A function of the copy; null when it has none of that name.
void* function_of(const LibraryCopy* copy, const char* name);
// The same, of the copy that the call is bound to: what is asked of the library about a call.
template <typename Function>
Function ask(const CallSite& site, const char* name) {
  return reinterpret_cast<Function>(function_of(site.copy(), name));
}

// Calls of these libraries that this thread is within: the outermost is the program's.
extern WEIR_OWN WEIR_THREAD int library_depth;

// The start of a call that is to be recorded, or 0. After end_library_call the next one may be.
WEIR_INLINE uint64_t begin_library_call() {
  if (WEIR_LIKELY(!recording()) || library_depth != 0) return 0;
  ++library_depth;
  const uint64_t now = base::ticks();
  return now != 0 ? now : 1;
}
struct LibraryCall {
  Op op;
  Layer layer;
  uint32_t function;  // and the manner of the call: wire::numbered
  uint32_t name;
  uint64_t bytes;
  bool failed;
};
void end_library_call(const LibraryCall& call, Span span);

// "library:path:variable", the path made absolute.
uint32_t name_of_variable(const char* library, const char* path, const char* variable);

}  // namespace weir::hook
