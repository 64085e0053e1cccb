// SPDX-License-Identifier: Apache-2.0
// Puts the hooks of optional libraries in front of their functions: in the tables through which
// loaded programs and libraries call (global offset table, tables of function pointers). A place
// that is bound to a function leads to the hook, which goes on to that function; a place that is
// bound to nothing stays so. So a process finds those functions, and those alone, that it finds
// without weir.
#pragma once

#include <stdint.h>
#include <time.h>

#include "base/compiler.h"
#include "hook/real.h"

namespace weir::hook {

// Looks at all that is loaded, and from now on at what is loaded later.
void begin_redirecting();
bool is_redirecting();

// Looks at what has been loaded since. deep: it was loaded with RTLD_DEEPBIND, and so misses the
// exported hooks, too.
void redirect_loaded(bool deep);

// What a lookup gives that has found this function of an optional library; null when it is to be
// left alone.
void* redirected(Slot slot, void* found);

// The kernel's clock_gettime, which no library can stand in front of. Null: it gives none.
using ClockFunction = int (*)(clockid_t, timespec*);
ClockFunction kernel_clock();

// Grows when a library is unloaded: what is remembered by address may mean something else then.
extern WEIR_OWN uint32_t unloadings;

}  // namespace weir::hook
