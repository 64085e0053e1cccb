// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/compiler.h"

namespace weir::hook {

// Set while liburing makes its system calls, which may pass the hook of syscall().
extern WEIR_OWN WEIR_THREAD bool within_uring_library;

}  // namespace weir::hook
