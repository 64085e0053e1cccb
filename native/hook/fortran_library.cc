// SPDX-License-Identifier: Apache-2.0
#include "hook/fortran_library.h"

#include "hook/library.h"

namespace weir::hook {
namespace {

constexpr int kLibraries = 8;
constinit FortranLibrary libraries[kLibraries] = {};

// Two threads that meet a copy at the same time may both note it: nothing is lost but an entry.
FortranLibrary* library_of(void* identity) {
  for (FortranLibrary& library : libraries) {
    if (base::load(&library.identity) == identity) return &library;
  }
  for (FortranLibrary& library : libraries) {
    if (base::exchange(&library.taken, 1u) != 0) continue;
    base::store(&library.identity, identity);
    return &library;
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
