// SPDX-License-Identifier: Apache-2.0
// Which libgfortran a caller belongs to. A process may hold several: Python's numpy brings one, a module built by f2py uses the
// system's. They share no units, so a statement must reach the copy that its program was linked to.
#pragma once

#include <stdint.h>

#include "hook/real.h"

namespace weir::hook {

// Units of one copy: unit and file in one word each. No program has unit -2147483648, so that an empty slot is 0.
inline constexpr uint32_t kFortranUnits = 1u << 14;

class FortranLibrary {
 public:
  // The real function of the row. A copy that lacks it has no caller that needs it.
  void* function(Slot slot) {
    void* p = base::load_relaxed(&functions_[slot]);
    return WEIR_LIKELY(p != nullptr) ? p : resolve(slot);
  }

  uint64_t units[kFortranUnits];

 private:
  friend FortranLibrary* find_library(void* identity);
  WEIR_COLD void* resolve(Slot slot);

  uint32_t taken_;
  void* identity_;  // its _gfortran_st_write; stored last
  void* handle_;    // of dlopen; the copy stays loaded
  void* functions_[kSlots];
};

// A program or library that calls, from its lowest address to its highest.
struct FortranCaller {
  uintptr_t begin, end;
  FortranLibrary* library;  // stored last; null: not (yet) in use
};
extern WEIR_OWN const FortranCaller* last_fortran_caller;
WEIR_COLD FortranLibrary* find_library_of_caller(uintptr_t address);

// The copy behind a return address. Cost: two comparisons while the callers lie in one module. Takes no lock.
inline FortranLibrary* library_of_caller(const void* return_address) {
  const auto address = reinterpret_cast<uintptr_t>(return_address);
  const FortranCaller* last = base::load(&last_fortran_caller);
  if (WEIR_LIKELY(address >= last->begin && address < last->end)) return last->library;
  return find_library_of_caller(address);
}

}  // namespace weir::hook

// In a hook of libgfortran: the copy of its caller, and the real function there.
#define WEIR_CALLERS_LIBRARY() weir::hook::library_of_caller(__builtin_return_address(0))
#define WEIR_FORTRAN_REAL(symbol, library) \
  reinterpret_cast<decltype(&hook_##symbol)>((library)->function(weir::hook::kSlot_##symbol))
