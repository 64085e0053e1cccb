// SPDX-License-Identifier: Apache-2.0
// A cache of blocks that the ranks of a node share: layers `global` and `gather` are policies over
// it. One cache for each pair of block size and capacity, in shared memory; files come and go in
// it.
//
// Reading: the rank that first wants a block reads it whole from the file; the others wait for it,
// a bounded time, and meanwhile read the blocks that come next. Writing: bytes go into the block,
// exactly these bytes are marked dirty, and whoever completes a block writes it, while others go on
// reading it and writing into it. A rank's write is in the block before it returns, so every later
// read on the node has it. No lock in shared memory is held during a request to the file.
//
// Threads: one call at a time on an Opening (the file's lock), but prepare() may run beside it in
// another thread. Results are bytes or -errno. No errno is touched, no hooked function called.
#pragma once

#include <stdint.h>
#include <sys/uio.h>

#include "layers/cache/declared.h"
#include "layers/cache/layout.h"

namespace weir::cache {

struct Shape {
  uint32_t block_bytes;  // rounded up to whole pages
  uint32_t slots;        // rounded up to whole sets
  uint32_t forwarders = 0;  // processes that make the requests for the ranks (forwarding.h)
  bool operator==(const Shape&) const = default;
};

// The node's cache of this shape; null: no shared memory for it. Cheap after the first time in a
// process. It is the process's to its end: nobody gives it back. Threads: any.
Cache* attach(const Shape& shape);
// The same for a forwarding process, which takes no part in its arena. False: it is not there.
bool look_at(const Shape& shape, Cache* to);

// How this opening reaches the file.
struct Below {
  void* context;
  int64_t (*read)(void* context, const iovec* pieces, int count, uint64_t bytes, uint64_t offset);
  int64_t (*write)(void* context, const iovec* pieces, int count, uint64_t bytes, uint64_t offset);
  bool (*about)(void* context, Stamp* stamp);
  void (*lost)(void* context, int error, uint64_t bytes);  // accepted bytes that were given up
  const int* descriptor;
  const char* path;
  bool reads, writes;
  uint32_t level = 0;  // as in writeback::Registration
};

// Blocks that other nodes have read already (layers/cache/between.h). Null: only the file system.
struct Between;

using namespace layers::cache_declared;

struct Policy {
  bool keeps_reads;      // global; else only written bytes are kept (gather)
  bool several_nodes;  // ranks on other nodes may have the file: written blocks are not kept, close
                       // and barriers write through
  uint64_t wait_ns;  // how long a writer that needs room waits for others while none of them writes
  // So many for the node and for each opening may be loaded in vain before reads bypass the cache,
  // and 32 times as many requests in a row be written in vain before writes do; 0: any number.
  uint32_t wasted_blocks = 0;
};

struct Opening {
  Cache* cache;
  Below below;
  Policy policy;
  Between* between;
  uint64_t* counts;     // kStatistics
  uint32_t file;        // its entry
  int32_t registered;     // slot in the arena, -1
  bool unprotected;     // nobody would drain: writes go through
  uint64_t errors_seen;
  uint64_t next_block;  // where a sequential reader goes on
  uint64_t last_block,
      step;             // where the last call began, and how many blocks behind the one before it
  uint32_t steps;       // of that length in a row
  uint64_t share_key;   // names the file and its state between nodes; 0: not to be shared
  uint64_t
      claimed;  // word of the place between nodes that this rank has said it would fill; 0: none
  uint32_t claimed_home, claimed_place;
  bool helping;         // reading a block while another is waited for: waits for nothing
  bool loaded;          // the read in progress had to load a block: that saved nothing
  char* spare;          // one block, for merging
  bool held_up;         // bypassed something whose owner lives and does not go on
  bool forwards;        // forwarding processes make its requests, where there are any
  bool enrolled;        // one of them may have its descriptor
  bool no_forwarder;    // there was none to be had
  uint64_t expected;    // block of the last expect_reads()
  uint32_t barriers;    // between::barriers when the file was last looked at
};

// 0 or -errno (no room: then no layer).
// What o.below points to stays where it is until close().
int64_t open(Opening& o, uint64_t device, uint64_t inode);
// Flushed before, or given up. Returns when the write-back daemon has no copy of its descriptor.
void close(Opening& o);

// `bytes` lie in the pieces, and none of these is empty.
int64_t read(Opening& o, const iovec* pieces, int count, uint64_t bytes, uint64_t offset);
int64_t write(Opening& o, const iovec* pieces, int count, uint64_t bytes, uint64_t offset);
inline int64_t read(Opening& o, void* to, uint64_t bytes, uint64_t offset) {
  const iovec piece{to, bytes};
  return read(o, &piece, 1, bytes, offset);
}
inline int64_t write(Opening& o, const void* from, uint64_t bytes, uint64_t offset) {
  const iovec piece{const_cast<void*>(from), bytes};
  return write(o, &piece, 1, bytes, offset);
}
// As readers on this node must see it.
int64_t size(Opening& o);
// After barriers of all nodes, or whenever others may have changed the file: clean blocks are
// forgotten if it shows that they have.
void look_again(Opening& o);
// The same at the next read or question for the size: nothing is asked now.
void look_later(Opening& o);
// Whether this is the only opening on the node, and nothing of the file is dirty: then requests may
// go past the cache.
bool alone(const Opening& o);
// Whether ranks of the node have accepted bytes of the file that may not be in it yet.
bool has_accepted(const Opening& o);
// patient: waits a bounded time for other ranks to complete the blocks that they share with this
// one. Everything dirty of the file is written then. What cannot be is given up (Below::lost): 0 or
// that error.
int64_t flush(Opening& o, bool patient);
void truncated(Opening& o, uint64_t bytes);  // before and after the file itself is cut
// What bypasses the cache by now (layout.h's Bypassed), for it was in vain too often
// (Policy::wasted_blocks).
uint32_t bypassed(const Opening& o);
// Clean blocks of the file are forgotten.
void invalidate(Opening& o);
// An error that another rank met while writing this file's blocks and that this opening has not
// reported; 0: none.
int64_t take_error(Opening& o);
// Loads a block that will be wanted, so many bytes of it at once. True when it did.
bool prepare(Opening& o, uint64_t block, uint32_t wanted = 0);

}  // namespace weir::cache
