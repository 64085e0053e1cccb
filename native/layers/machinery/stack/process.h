// SPDX-License-Identifier: Apache-2.0
// Files under layers where the process forks, becomes another program, or ends.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "layers/machinery/rules/rules.h"

namespace weir::stack {

// Puts rules in force. rank: -1 without one. own_calls: the program makes system calls that no hook
// sees (has_own_calls() in layer.h). The rules stay where they are.
void begin(const rules::Rules& rules, int rank, bool own_calls = false);

// fork: every file under layers is left to the kernel, so that parent and child share what the
// kernel shares.
void before_fork();
void after_fork_in_parent();
void in_forked_child();
// vfork, posix_spawn, system, popen: files that the child inherits through exec are left; in the
// child of vfork also whatever it touches. The others are written: weir may be unable to enter the
// new program, which then reads what the file system has. everything: what the child does to its
// descriptors is not known.
void before_spawn(bool everything);
// A number that is another one when a child has been waited for; 0: the process, or the one that it
// was forked from, has started none.
uint64_t ended_children();
// exec: files that the new program inherits are left, the others written.
void before_exec();
// io_uring: requests that no hook sees. Nothing is layered any more.
void leave_all_for_good();
// The same before the program sets up a ring of requests (io_uring). False: the rules have layers
// that store another form (cos, stripe), which the kernel's requests would overwrite or hand out as
// they are: there must be no ring, as where an administrator forbids it (EPERM).
bool leave_for_ring();
// The process is about to filter its system calls: what layers hold is written and their files
// leave them, and no file gets layers from now on. Files in another form (cos, stripe) keep theirs,
// which alone can read them; the rest of their stack is bypassed.
void before_filter();
void without_filter();  // it was refused
// sync, syncfs.
void flush_all();
// A barrier of ranks on several nodes: files whose bytes these share by the file system alone.
void flush_shared();
// _exit and abort: everything that can be written without waiting for other threads.
void at_quick_end(bool aborts = false);
// exit: everything is written; what comes later (libgfortran's last buffers, stdio's) goes through
// at once. The report of lost bytes is due.
void at_end();

// Lost bytes so far by file: a line each into fd, or into what standard error was when the first
// was lost, and one in the node's directory. At the end of the process, in any way but a kill.
void report_losses(int fd);
extern WEIR_OWN bool losses_are_said;  // the lines into fd

// RLIMIT_FSIZE, when the program changes it.
void limit_changed();

}  // namespace weir::stack
