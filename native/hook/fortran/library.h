// SPDX-License-Identifier: Apache-2.0
// Which libgfortran a statement belongs to. A process may hold several: Python's numpy brings one,
// a module built by f2py uses the system's. They share no units. The statement itself goes to the
// function that its program was bound to.
#pragma once

#include <stdint.h>

#include "hook/binding.h"

namespace weir::hook {

// Units of one copy: unit and file in one word each. No program has unit -2147483648, so that an
// empty slot is 0.
inline constexpr uint32_t kFortranUnits = 1u << 14;

struct FortranLibrary {
  uint64_t units[kFortranUnits];
  void* identity;  // its dynamic section; null: free
};

WEIR_COLD FortranLibrary* find_fortran_library(Binding& binding);

// The copy behind a call. Takes no lock.
inline FortranLibrary* fortran_library(const Bound& bound) {
  void* const known = base::load(&bound.binding().copy);
  return WEIR_LIKELY(known != nullptr) ? static_cast<FortranLibrary*>(known)
                                       : find_fortran_library(bound.binding());
}

}  // namespace weir::hook
