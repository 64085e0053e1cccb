// SPDX-License-Identifier: Apache-2.0
// Which file a unit of Fortran is connected to. Lock-free; units are few and their numbers come
// back, so nothing is ever removed: a closed unit stays known as closed.
#pragma once

#include <stdint.h>

#include "hook/fortran/library.h"

namespace weir::hook {

// File id, or 0: not connected, or not known. Units 5, 6 and 0 belong to descriptors 0, 1 and 2
// until the program opens them anew; these descriptors are libgfortran's from then on.
uint32_t file_of_unit(FortranLibrary* library, int32_t unit);
void connect_unit(FortranLibrary* library, int32_t unit, uint32_t file);
void disconnect_unit(FortranLibrary* library, int32_t unit);

}  // namespace weir::hook
