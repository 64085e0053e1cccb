// SPDX-License-Identifier: Apache-2.0
// Open files that are memory of a layer until they are closed (pack): the descriptor is a memfd,
// and the kernel serves it. What the layer cannot do with such a file makes it a real one first,
// under all its numbers, and the call is the kernel's.
#pragma once

#include <sys/stat.h>

#include "layers/machinery/stack/file.h"
#include "layers/machinery/stack/names_of_layers.h"

namespace weir::stack {

// Counts what may have given others the memory of all open files.
extern WEIR_OWN uint32_t times_lent;

inline bool is_in_memory(const File* f) { return WEIR_UNLIKELY(f != nullptr) && f->in_memory; }

// What fstat says of the memory becomes what stat says of the name.
void patch_stat_in_memory(const File* f, struct stat* to);
// fchmod and the like of a descriptor opened for reading; one for writing carries its own until it
// is closed. True: done, with *result and errno as the call leaves them.
bool change_in_memory(int fd, const Change& change, int* result);
void moved_in_memory(File* f, int from, int to);
// The kernel is about to be asked: no more in memory where another process has made the file real.
void follow_in_memory(File* f);
// Before the kernel makes the file so long: it follows, and becomes a real one where that is large.
void before_growth(int fd, uint64_t bytes);
// After a call on the memory that failed with EPERM. True: another process was making the file
// real, which it is here by now: the call can be made once more.
bool was_sealed(int fd);
// After a wait for a lock: another process has made the file real meanwhile, and the lock
// is to be taken once more.
bool lock_was_of_memory(int fd);

// File::unsettled is over: the layer has settled the memory, or written over it.
void note_settled(File* f);
// A path in /proc or /dev may lead to any open file: those that are memory are as the kernel is to
// show them.
void settle_all_memory();
bool leads_to_files(const char* absolute);

// The number `to` stands for what `from` stands for, and is inherited by other programs as before.
void copy_again(int from, int to);

// False: it cannot; a layer need not make files real that are open for reading alone, but where
// that must `always` be. Locks of the file go with it.
bool make_real(File* f, Reason, bool always = false);
void make_all_real(Reason);
// Those of one layer for which is() is true.
void make_real_where(const NamesOfLayer&, bool (*is)(Layer&, const void* with), const void* with,
                     Reason);

}  // namespace weir::stack
