// SPDX-License-Identifier: Apache-2.0
// Reads the dynamic symbols of what is loaded: an undefined one is a function that somebody may
// call.
#include "hook/mpi/needs.h"

#include <elf.h>
#include <string.h>

#include "hook/object.h"

namespace weir::hook {
namespace {

bool is_of_mpi(const char* file) {
  constexpr const char* kPrefixes[] = {"libmpi",   "libpmpi", "libompi",
                                       "libopen-", "mca_",    "libweir-preload"};
  for (const char* prefix : kPrefixes) {
    if (strncmp(file, prefix, strlen(prefix)) == 0) return true;
  }
  return false;
}

bool needs(const Object& object, const char* prefix) {
  return any_undefined(object, [prefix, size = strlen(prefix)](const char* name) {
    return strncmp(name, prefix, size) == 0;
  });
}

}  // namespace

bool program_needs(const char* prefix, const char* other_prefix) {
  return for_each_object([&](const Object& object) {
    return !is_of_mpi(object.file()) && (needs(object, prefix) || needs(object, other_prefix));
  });
}

}  // namespace weir::hook
