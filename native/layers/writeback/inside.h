// SPDX-License-Identifier: Apache-2.0
// What the files of this room share and others need not know.
#pragma once

#include "layers/writeback/client.h"
#include "layers/writeback/format.h"
#include "base/clock.h"

namespace weir::writeback {

inline constexpr int kArenas = 512;  // of one process
extern WEIR_OWN Arena* own_arenas[kArenas];
// Guards the list above and the daemon's start, among threads of this process.
extern WEIR_OWN node::Lock own_lock;

// Sends a message, with a descriptor when it is not -1. False: nobody is there to read it.
// Threads: any. The descriptor stays the caller's: the daemon gets a copy. Waits 3 s at most while
// the daemon's queue is full. Cost: a socket of its own for each message.
bool tell(MessageKind kind, const Arena* arena, int slot, int descriptor);
// The same to the socket of that name in the node's directory, whoever serves it. The socket and
// the directory are checked to be the user's.
bool send_message(const char* socket_name, const Message& message, int descriptor);
// Whether there is a daemon that lives, whether or not it has been notified of everything.
bool daemon_lives();
uint32_t daemon_generation();
// Maps the pulse page of the directory; null when it cannot be.
PulsePage* pulse_page();
// Tells of an arena in which nothing is dirty yet, without waiting for an answer: the daemon,
// started at need, looks by itself for arenas and who takes part in them. ensure() makes sure of it
// before the first byte is accepted.
void announce(const Arena* arena);
// Starts the program; true when it was started, not yet when it answers.
bool start_daemon();
// The same program with an option before the directory, which does that and ends.
bool start_daemon(const char* option);
using base::now_ns;

}  // namespace weir::writeback
