// SPDX-License-Identifier: Apache-2.0
// Descriptors of weir's own that stay open (O_DIRECT twins, sockets). They lie at high numbers; the
// program's close, dup2 and close_range do not reach them: to it they are not open.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"

//
// Threads: any. 512 at a time for the process.
namespace weir::stack {

extern WEIR_OWN uint32_t private_count;

// Moves a descriptor, just opened, to a high number, with close-on-exec, and remembers it under
// *place, which gets the number: it changes when the program takes that number with dup2. False:
// too many, or none to be had; then fd is closed.
bool keep_private(int fd, int* place);
// The same for a number that stays as it is: the program has closed it. release_private: it is the
// program's again.
bool adopt_private(int fd, int* place);
// An adopted number goes to a high one, so that the program may have it; false: none was to be had,
// and it stays.
bool move_up(int* place);
// To the lowest free number, which the program's next open would have. False: the program has as
// many as it may. Nothing may be under way on the old number, which is closed.
bool move_down(int* place);
void release_private(int fd);
// Closes it; *place is -1 afterwards.
void close_private(int* place);

bool find_private(int fd);
WEIR_INLINE bool is_private(int fd) {
  return WEIR_UNLIKELY(base::load_relaxed(&private_count) != 0) && find_private(fd);
}
// The program is about to make this number its own by dup2.
void make_way(int fd);
// The lowest private number that is not below `from`; -1: none. For close_range.
int next_private(unsigned from);
// In a forked child: they are its own, as copies; whoever does not want them closes them.

}  // namespace weir::stack
