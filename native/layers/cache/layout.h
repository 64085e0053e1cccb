// SPDX-License-Identifier: Apache-2.0
// The cache as it lies in the extra part of a shared arena (layers/writeback/arena.h): a table of
// files, sets of slots, and a slot for each block that can be there at a time. The bytes of a slot
// lie in pieces, which are the arena's blocks: so a killed rank's dirty bytes are found and written
// out by weir-drain, which knows nothing of this directory.
//
// All of it is sound at every instruction, for any rank may be killed at any: locks name their
// owner (layers/machinery/node/lock.h), a slot that is being filled names the rank that fills it,
// and what a dead rank left is taken over by whoever comes upon it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "layers/writeback/arena.h"
#include "layers/machinery/node/lock.h"

namespace weir::cache {

// of this and of Place: part of the names of what is shared
inline constexpr uint32_t kVersion = 9;
inline constexpr uint32_t kWays = 8;       // slots in which a block may lie
inline constexpr uint32_t kPieces = 64;    // of a slot, at most
inline constexpr uint32_t kFiles = 512;    // known at a time
inline constexpr uint32_t kMostSlots = 2048;
// ranges accepted while their block is written that are distinguished
inline constexpr uint32_t kAgain = 8;
// ranks that one block was taken from and that may still be at it
inline constexpr uint32_t kRevokedFrom = 6;

enum State : uint32_t {
  kFree,
  kLoading,  // one rank is reading it; nothing in it is dirty
  kWhole,    // bytes [0, valid) are the file's, dirty ones among them
  kPartial,  // only the dirty bytes mean anything
};

struct alignas(128) Slot {
  // for every change but the filling of a slot that is loading; no request reaches the file under
  // it
  node::Lock lock;
  // the rank (or the write-back daemon) that writes its dirty bytes to the file; had before `lock`
  node::Lock writer;
  // 1: that one has begun. The slot stays the block's, and goes on taking bytes
  uint32_t writing;
  // 1: it is being taken from ranks that do not go on, and takes no more bytes
  uint32_t leaving;
  // changes whenever the bytes may become another block's: readers copy, then look whether it is
  // still the same
  uint32_t generation;
  uint64_t tag;          // file and block; 0: free
  uint32_t state;        // State; a futex for who waits until it is loaded
  uint32_t valid;
  node::Identity loader;
  uint32_t discard;      // what is being loaded is out of date already
  uint32_t failures;     // writes of its dirty bytes that failed
  uint64_t used;         // the cache's clock when it was last of use
  uint64_t complete;     // by piece: dirty from its first to its last byte
  uint64_t touched;      // by piece: some of it is dirty, or about to be
  uint32_t backed;       // its pieces have been taken
  uint32_t accepted;     // writes taken in since it was last written out
  uint32_t requests;     // counts those that write it to the file: whether its writer goes on
  uint32_t again_count;
  // ranges accepted since the writer noted what it writes: they stay dirty (low half: begin, high
  // half: end)
  uint64_t again[kAgain];
  // 1: ranks that were waited for in vain (node::revoke) may still be at it: the slot is nobody's
  // until that is over
  uint32_t revoked;
  uint32_t revoked_from[kRevokedFrom];  // these, as node::revoke() names them
  // what it had then: a write that one of them may still make has to be of today's bytes
  uint64_t revoked_tag;
};

// What shows that somebody else changed a file.
struct Stamp {
  uint64_t size;
  int64_t mtime_s, ctime_s;
  uint32_t mtime_ns, ctime_ns;
  bool operator==(const Stamp&) const = default;
};

struct FileEntry {
  node::Lock lock;
  uint32_t generation;  // of its use for one file
  uint64_t device, inode;
  Stamp stamp;
  // the stamp was taken so soon after the last change that another change could look the same
  uint32_t fresh;
  uint32_t openings;    // too many when ranks were killed
  uint32_t writers;     // openings that may write
  uint32_t fruitless;   // times in a row that one waited in vain
  uint32_t waiting;     // writers that wait for others: when all do, nobody need
  uint32_t error;       // errno of the last failed write
  uint64_t errors;      // counts them
  uint64_t end;         // where the accepted bytes end; the file itself may be shorter
  uint64_t extent;      // where the bytes end that the node's ranks ever wrote
  // counts requests that wrote the file or cut it: a stamp taken before one of them may be older
  // than it
  uint64_t written;
  // counts pieces of writes that were accepted: whether waiting for others makes sense
  uint64_t progress;
  uint64_t reached;     // first block that was never loaded
  uint64_t used;
  // when the stamp was taken (CLOCK_MONOTONIC); 0: it has to be taken before it is used
  uint64_t looked_ns;
  // in bytes: what loading blocks has cost less what reads served from them have saved
  int64_t debt;
  // requests written in a row that were hardly fewer than the writes accepted into them
  uint32_t scattered;
  // Bypassed: what goes past the cache until the file's last opening on the node ends
  uint32_t bypassed;
  // a signal handler went past the cache: clean blocks are forgotten at the next call
  uint32_t suspect;
};

// blocks are not loaded; writes go to the file
enum Bypassed : uint32_t { kReadsBypassed = 1, kWritesBypassed = 2 };

struct Directory {
  uint32_t ready;  // kVersion, when the rest is there
  uint32_t slots, sets, pieces, piece_bytes, block_bytes;
  uint64_t clock;
  uint32_t revoked;      // slots that are
  node::Lock files_lock;
  node::Lock set_locks[kMostSlots / kWays];
  FileEntry files[kFiles];
  Slot slot[];  // then uint32_t blocks[slots][pieces], of the arena, plus one; 0: not taken yet
};

inline uint64_t tag_of(uint32_t file, uint64_t block) { return uint64_t{file + 1} << 48 | block; }
inline uint32_t file_of(uint64_t tag) { return static_cast<uint32_t>(tag >> 48) - 1; }
inline uint64_t block_of(uint64_t tag) { return tag & ((uint64_t{1} << 48) - 1); }

struct Forwarding;  // layers/cache/forwarding.h

// A cache as this process has it mapped.
struct Cache {
  writeback::Arena* arena;
  Directory* directory;
  uint32_t* blocks;
  uint32_t block_bytes, pieces, piece_bytes, slots, sets;
  Forwarding* forwarding;  // null: its ranks make all requests themselves
  uint32_t forwarders;

  Slot& slot(uint32_t n) const { return directory->slot[n]; }
  uint32_t number(const Slot& s) const { return static_cast<uint32_t>(&s - directory->slot); }
  int arena_block(const Slot& s, uint32_t piece) const {
    return static_cast<int>(blocks[number(s) * pieces + piece]) - 1;
  }
  char* bytes_of(const Slot& s, uint32_t piece) const {
    return static_cast<char*>(writeback::data(arena, arena_block(s, piece)));
  }
  uint32_t set_of(uint64_t block) const { return static_cast<uint32_t>(block % sets); }
};

}  // namespace weir::cache
