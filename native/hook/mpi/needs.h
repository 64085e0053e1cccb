// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weir::hook {

// Whether the program, or a library that it has loaded, but for MPI's own, names a function that
// begins with one of these.
bool program_needs(const char* prefix, const char* other_prefix);

}  // namespace weir::hook
