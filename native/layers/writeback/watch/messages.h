// SPDX-License-Identifier: Apache-2.0
// Messages that processes of this user send to a daemon of the node, each with one descriptor or
// none.
#pragma once

#include "layers/writeback/format.h"

namespace weir::daemon {

// The next message of a socket with SO_PASSCRED. False: there is none now. *descriptor: the
// caller's from now on, -1 if none came. A message of another form, user or process than it states
// has magic 0.
bool receive_message(int socket, writeback::Message* message, int* descriptor);

}  // namespace weir::daemon
