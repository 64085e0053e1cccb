// SPDX-License-Identifier: Apache-2.0
// What the files of this room share with one another and with nobody else.
#pragma once

#include <fcntl.h>

#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/file.h"

namespace weir::stack {

// table.cc
int highest_known();
bool may_change();  // false in a vfork child
void enter_table(int fd, File* f);
void mark_plain(File* f);    // after f->left: its numbers' entries say so
void drop_unseen(int fd);    // the number was closed without a hook
void give_up(File* f);       // no number names it any more

bool begin_parking(int fd, File* f);  // the number becomes weir's own; the file's lock is held
void end_parking(File* f);            // and the program's again
void end_parked(File* f);             // flushes, closes, gives up

// sharing.cc
void set_left(File* f);  // its layers are gone: it is in nobody's way any more, and is so for good
void set_own(File* f);  // File::common is over
void end_lease(File* f);
void leave_lease(File* f);

// leave.cc, with the file's lock held.
// Everything accepted goes down; an error stays with the file.
void flush_inside(File* f);
// Before the kernel looks at the file, without its lock: bytes that others accepted into layers
// that f shares, and that f, open for reading, cannot write. They leave, and f with them.
void fetch_from_sharers(const File* f);
// After it has left, without its lock: other openings on the node that shared its layers leave as
// well.
void call_back_sharers(const File* f, Reason reason);
void leave_inside(File* f, Reason reason, const Layer* by);
// The deferred error, which counts as reported; a positive errno or 0.
int take_error(File* f);

// open.cc
bool make_path_absolute(int directory, const char* path, char* to);  // to: of Scratch's size
// Of an open; null: none, or it leaves the file alone.
const rules::Rule* rule_for(const char* absolute_path, int flags = O_RDONLY);
void set_rules(const rules::Rules& rules, int rank, bool makes_own_calls);
const rules::Rules& rules_now();

// transfer.cc
extern WEIR_OWN uint64_t file_limit;  // RLIMIT_FSIZE

}  // namespace weir::stack
