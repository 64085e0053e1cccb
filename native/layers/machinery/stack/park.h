// SPDX-License-Identifier: Apache-2.0
// Files that the program has closed and that are kept as they are, descriptor, layers and lease,
// because a layer of theirs asked for it (File::parks, layer keep): the next open of the same name
// in the same way finds them and no request is made. While parked a number is weir's own: to the
// program it is not open (layers/machinery/stack/private.h). It goes to a high one before the
// program is given another number, so that this one is the lowest free, and a file that is found
// gets the lowest as well; but on FUSE, where each close of a number is a request (flush), files
// keep their numbers.
//
// Who else may have touched the file? Ranks of this node: an opening that conflicts calls a parked
// file back as any other, and names that change on the node are counted. Other nodes: what is older
// than the layer's valid_ms is compared by one stat.
#pragma once

#include <stdint.h>

#include "layers/machinery/stack/file.h"

namespace weir::stack {

struct Parking {
  uint32_t most;       // files of this process parked at once
  uint64_t valid_ns;
  uint64_t* reopened;    // statistics of the layer
  uint64_t* revalidated;
};
// Asked by a layer in ready(). A file that was opened by a path that is not exact is not parked:
// its File::path may be another file's.
void may_park(File* f, const Parking& how);
// As many are parked as may be, and to close some for others has not paid: a layer passes the file
// through.
bool house_is_full();
void never_park(const File* f);  // the file ends

// The last number of the file is being closed: true when it has been parked instead; the close is
// then over.
bool park(int fd);
// A parked file that this open may have; it is in the table again, at its start. Null: none.
File* unpark(const char* absolute_path, int flags);

extern WEIR_OWN uint32_t parked_count;
WEIR_INLINE bool any_parked() { return WEIR_UNLIKELY(base::load_relaxed(&parked_count) != 0); }

// In a forked child: threads that had some in hand are not there.
void count_parked_in_child();

// The size of a file that is kept, open or parked, under this name; false: none is, or it does not
// append.
bool size_of_kept(const char* absolute_path, uint64_t device, uint64_t inode, uint64_t* bytes);

// Closes what is parked: all of it (fork, exec, no descriptors left), what has been called back, or
// what bears a name at or below this one. True: there was some.
bool drop_parked();
void drop_left();
void drop_named(const char* absolute_path);
// Those of the descriptor's file, before the program locks it: a close of any other descriptor
// gives up all its locks (fcntl(2)).
void drop_same_file(int fd);
// Hands down what parked files hold.
void flush_parked();
// A handler or an ending process: those that can be had without waiting.
void drop_parked_at_quick_end();

// A name is about to change (unlink, rename, rmdir). Also tells the node.
void name_changes(int directory, const char* path);
// It has: what anybody asked meanwhile is not to be believed. A truncate by path counts as well,
// whoever had the file open. Gives the call's result back; keeps errno.
int names_then_changed(int result);

}  // namespace weir::stack
