// SPDX-License-Identifier: Apache-2.0
// One open at the file system for those that the ranks of a node make of one name at about the same
// time: the first makes it and, where others wait for it or have made theirs meanwhile, gives the
// forwarding process a copy of its descriptor; the others get copies of that one. All of them then
// are one open file to the kernel, so position, status flags and locks are shared: the layers have
// the position (stack::own_description() separates a file before anything else matters).
//
// Nobody waits for an open that fails or for a rank that has ended, and for none longer than
// kOpenWaitNs. A name counts as the same file for kOpenValidNs, as long as no name of the node has
// changed.
#pragma once

#include "layers/cache/forwarding.h"

namespace weir::cache {

// What one rank's open has to do with those of others.
struct SharedOpen {
  Cache* cache;
  uint32_t row;      // 1 + its place in Forwarding::opens; 0: none
  uint64_t key;
  int32_t flags;
};

using IsOpenHere = bool (*)(uint64_t device, uint64_t inode);
// Before an open of the name with these flags (the key has the path, and who opens it): a
// descriptor that serves, or -1: the caller opens it, and calls end_open() or give_up_open() then.
// A file that the process has open already gets an open of its own.
int begin_open(SharedOpen& to, Cache* cache, uint64_t key, int flags, IsOpenHere is_open_here);
enum class Ended { kKept, kGivenAway, kWanted };
// The file is open. o, by which the caller reaches it, is null as long as nobody is known to want a
// copy of the descriptor; kWanted: somebody does, and the caller comes again with it.
Ended end_open(SharedOpen& s, Opening* o, int descriptor);
// It could not be opened, or is a file that ranks do not share.
void give_up_open(SharedOpen& s);

}  // namespace weir::cache
