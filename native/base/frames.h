// SPDX-License-Identifier: Apache-2.0
// Whether a signal handler is among the callers. What a handler interrupted may be half done: a
// record on its way into its place, the program's own malloc. Code that frees what such a frame
// uses, or allocates, checks this first.
#pragma once

#include "base/compiler.h"

namespace weir::base {

// False is certain: between here and the end of the thread's own stack there is no frame as the
// kernel makes it for a handler. True may also be the remains of an older one, a stack deeper than
// 4 MiB, or a stack that is not the thread's own (sigaltstack). A handler that swaps its stack for
// one which another context left is not found. Cost: no system call on the stack of main(), one for
// each 512 bytes in use on another.
WEIR_COLD bool may_be_in_handler();

// The same for who starts a thread, who must also find out on deep stacks and on those of the
// program's own making (coroutines): true on sigaltstack's; elsewhere, up to 1 GiB of the thread's
// own stack and 1 MiB of another one are searched. On x86-64 the remains of a handler do not count
// where no more signals are blocked than before it, and no handler is set with SA_NODEFER: they may
// lie in a buffer for as long as the program runs, which would have no layers. A handler that
// unblocks its own signal, and then writes to a file for the first time, is not found.
WEIR_COLD bool may_be_in_handler_on_any_stack();

}  // namespace weir::base
