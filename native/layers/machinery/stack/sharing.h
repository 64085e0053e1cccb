// SPDX-License-Identifier: Apache-2.0
// Openings of one file in this process and on this node: who may hold bytes of it, and who must
// leave.
#pragma once

#include "layers/machinery/stack/file.h"

namespace weir::stack {

// The files of this process by (device, inode).
void link(File* f);
void unlink(File* f);

// Registers an opening; false: it must be plain, and whoever else held bytes of the file has left.
// May wait.
bool may_hold(File* f, bool reads, bool writes);
// Before a call on a file that is f->empty: asks it to leave when another has taken it. appends:
// the call puts bytes where the file ends, which must not become another place meanwhile, so the
// file counts as holding from now on.
void look_after_empty(File* f, bool appends);
// Opens that several processes have in common (File::common) are for the only opening of a file in
// a process: what gives one of two its own closes a descriptor of the file, and with it all locks
// that the process has on it.
bool is_open_here(uint64_t device, uint64_t inode);
void set_common(File* f);  // before it is linked
// An opening has been linked: those of its file that are common get their own, as long as no
// descriptor leads to a lock. May wait for calls of other threads on these.
void separate_openings(const File* f);
// A plain opening: others that hold the file leave when one of them or this one writes.
void accept_plain(File* f, bool reads, bool writes);
// Plain openings for reading need not ask.
bool anybody_holds();
// Everybody who holds bytes of the file leaves: this process, the node.
void recall(uint64_t device, uint64_t inode);
// Whether somebody on the node shares layers of the file; whether everybody who holds bytes of it
// shares those of that rule, and has accepted none that the file lacks.
bool any_sharers(uint64_t device, uint64_t inode);
bool all_share(uint64_t device, uint64_t inode, uint32_t rule);

// After a write: the size that others must see.
void publish(File* f);
// The same after a write, which asks nobody: the file ends there or behind it.
void publish_end(File* f, uint64_t end);
// The kernel knows the size; that of a file which a layer transforms it never does. ends: the file
// is closed.
void unregister_file(File* f, bool ends = false);
// A file that a layer transforms has been cut (or made longer) through another opening or by name:
// what those in this process reported.
void cut_published(uint64_t device, uint64_t inode, uint64_t bytes);
// exact: whatever the kernel says; else where that is less.
bool size_of(uint64_t device, uint64_t inode, uint64_t* bytes, bool* exact);

void begin_sharing(int rank);
void forget_shares();  // in a forked child

}  // namespace weir::stack
