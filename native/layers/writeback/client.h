// SPDX-License-Identifier: Apache-2.0
// This process and the write-back daemon, weir-drain: one per node and job, a process of its own
// that writes out what others had accepted when they died. Started on demand (vfork, exec; nothing
// of the program's environment, descriptors, session or signals goes with it), notified of arenas
// and files through a socket in the node's directory. No descriptor stays open in the program.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

namespace weir::writeback {

// What the daemon holds locked while it lives; the kernel marks the word when it dies, however it
// dies.
struct Pulse {
  uint32_t word;  // a robust futex: thread of the daemon, or FUTEX_OWNER_DIED
  uint32_t generation;  // counts daemons: a new one knows nothing that the older one knew
};
extern WEIR_OWN const Pulse* pulse;       // null: none was ever asked for
extern WEIR_OWN uint32_t known_generation; // the daemon that knows everything of this process

// At the end of a process that outlives what started it (a daemon, the job's shell), when it was
// the last of its job: the job's directory goes with it. Where a daemon lives, the daemon removes
// it; else whatever started the job does.
void remove_after_last();

// Whether bytes that lie dirty in an arena outlive this process. Two loads; to be asked before each
// write is accepted into an arena. False: flush what is dirty, write through, call ensure().
// Threads: any, and signal handlers.
WEIR_INLINE bool protected_now() {
  const Pulse* p = base::load_relaxed(&pulse);
  if (WEIR_UNLIKELY(p == nullptr)) return false;
  const uint32_t word = base::load_relaxed(&p->word);
  return WEIR_LIKELY((word & 0x3fffffffu) != 0 && (word & 0x40000000u) == 0 &&
                     base::load_relaxed(&p->generation) == base::load_relaxed(&known_generation));
}

// Finds or starts a daemon, hands it all arenas and files of this process, and waits until it
// answers (some milliseconds; at most a few seconds). False: it cannot be had, and will not be
// tried again for a second. Any thread. Cost: two loads while protected_now(); else a lock among
// this process's threads, and messages.
bool ensure();

// At load: finds what starting a daemon needs, for later calls may come from a signal handler.
void begin();

// The daemon program, when it does not lie beside the library or program that contains this code
// (tests).
void use_daemon(const char* path);

// Starts a program of weir's that lies beside this library, as the daemon is started: a grandchild
// in a session of its own with nothing inherited but the user. Any thread.
bool start_program(const char* name, const char* option, const char* argument);

// In a forked child: arenas and files are the parent's.
void forked();

// Tells the daemon (if there is one) to look for processes that have died without telling.
void hurry();

}  // namespace weir::writeback
