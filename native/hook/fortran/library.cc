// SPDX-License-Identifier: Apache-2.0
#include "hook/fortran/library.h"

#include "hook/library/library.h"

namespace weir::hook {
namespace {

constexpr int kLibraries = 8;
constinit FortranLibrary libraries[kLibraries] = {};

// Entries are taken in their order, so that threads which meet a copy at the same time agree on
// one.
FortranLibrary* library_of(void* identity) {
  for (FortranLibrary& library : libraries) {
    void* found = base::load(&library.identity);
    if (found == nullptr && base::compare_exchange(&library.identity, &found, identity))
      return &library;
    if (found == identity) return &library;
  }
  return &libraries[0];
}

}  // namespace

FortranLibrary* find_fortran_library(Binding& binding) {
  Object object;
  if (!find_library_behind(binding.target, Library::gfortran, object)) return &libraries[0];
  FortranLibrary* const found = library_of(const_cast<ElfW(Dyn)*>(object.dynamic));
  base::store(&binding.copy, static_cast<void*>(found));
  return found;
}

}  // namespace weir::hook
