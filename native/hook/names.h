// SPDX-License-Identifier: Apache-2.0
// The rows of table.def by name and by number. Made at compile time; holds no address, so that
// loading the library costs nothing.
#pragma once

#include <stdint.h>

#include "hook/real.h"

namespace weir::hook {

const char* name_of(Slot slot);
Library library_of(Slot slot);
Result result_of(Slot slot);

// Of an optional library.
inline bool is_optional(Slot slot) { return library_of(slot) != Library::c; }
// Not exported: of an optional library, or of newer.def. A process may lack the function.
bool may_be_missing(Slot slot);

// kSlots: weir hooks no function of this name.
Slot slot_of(const char* name);
// The same, of functions that may be missing alone. Most names are refused by their first letters.
Slot missable_slot_of(const char* name);

// How the file of a library is called, and a function that it alone defines.
const char* file_of(Library library);
const char* own_function_of(Library library);

}  // namespace weir::hook
