// SPDX-License-Identifier: Apache-2.0
// Dirty bytes that survive their process. An arena is a file in the node's directory (shared
// memory, format: docs/formats/arena.md) with blocks of data, per block the list of ranges that are
// dirty, and the files that they belong to. When the process dies, in whatever way, the daemon
// writes exactly the ranges that are marked dirty, and no byte more. When daemon and process die
// together, `weir drain --recover` does it from what is left in the directory.
//
// Order for who writes into a block: data first, then mark_dirty(), then report success to the
// program. Order for who cleans: pwrite, then mark_clean(). A process killed at any instruction
// between leaves a list that is sound: either before or after.
//
// Threads: blocks and files are taken, registered and given back by any thread. What is said about
// one block (assign, mark, clean) is said by one thread at a time: under the owner's lock in an
// arena of one process, under lock_block() in a shared one. Nothing here sets errno or is for
// signal handlers. Failure is false, -1 or null, and means: write through.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/process.h"

namespace weir::node {
using Identity = base::ProcessIdentity;
struct Lock;
}

namespace weir::writeback {

// Dirty ranges of one block that a list has; with more of them it has a map.
inline constexpr uint32_t kRanges = 16;
// A block whose bytes belong at the file's end, wherever that is then.
inline constexpr uint64_t kAtEnd = ~uint64_t{0};
inline constexpr uint32_t kMostBlocks = 1u << 16, kMostFiles = 1u << 12;

// Bytes [lo, hi) of a block.
struct Range {
  uint32_t lo, hi;
};

struct Arena;  // as this process has it mapped

// An arena of this process alone: blocks of `block_bytes` (a multiple of 4 KiB), and room for that
// many registered files. Memory is taken as blocks are (tmpfs pages, allocated: never a SIGBUS).
// Null when there is no shared memory. Threads: any. The handle is the caller's until
// destroy_arena(). Cost: a file in /dev/shm with its tables, a mapping, a message to the daemon.
Arena* create_arena(uint32_t blocks, uint32_t block_bytes, uint32_t files);
// One that all processes of the node and job use under this name (a file name; letters, digits,
// '.', '-'); made by the first; programs with another version of the layout have another. `extra`
// bytes, zero at first, are the caller's (extra()), e.g. the directory of a cache. Null too when it
// exists with other numbers.
Arena* share_arena(const char* name, uint32_t blocks, uint32_t block_bytes, uint32_t files,
                   uint64_t extra_bytes);
// The same one where it is there, for a process that takes no part: it registers no file,
// and the arena ends without it. Destroyed by leave_arena().
Arena* look_at_arena(const char* name, uint32_t blocks, uint32_t block_bytes, uint32_t files,
                     uint64_t extra_bytes);
void leave_arena(Arena* arena);
// Processes that take part, dead ones that the daemon has not cleared away among them.
inline constexpr uint32_t kParticipants = 1024;
node::Identity participant_at(const Arena* arena, uint32_t place);
uint32_t own_place(const Arena* arena);  // of this process among them
void* extra(Arena* arena);
// The name of its file in the node's directory.
const char* name_of(const Arena* arena);
// Nothing may be dirty (what is, is drained by the daemon now). The shared one ends with its last
// process.
void destroy_arena(Arena* arena);

// Files.
// ------------------------------------------------------------

struct Registration {
  const int* descriptor;  // open for writing; the address stays good, and the number current, until
                          // unregister_file()
  uint64_t device, inode;
  const char* path;  // absolute: for reports and recovery
  bool append;       // O_APPEND
  uint32_t level = 0;  // layers between the one that holds the bytes and the system: those of a
                       // lower level are older
};
// Hands a copy of the descriptor to the daemon (starts it at need). The slot, or -1: no daemon or
// no room. In a shared arena processes that register the same (device, inode) get the same slot.
int register_file(Arena* arena, const Registration& file);
// Whether the daemon has the file: needed before the first byte is accepted. One load when it has;
// otherwise waits for its answer.
bool held(Arena* arena, int slot);
// The file is closed, nothing of it is dirty. Returns when the daemon has closed its copy: as long
// as one is open for writing the file cannot be executed (ETXTBSY), its file system not be
// unmounted (EBUSY), and its locks stay. descriptor: as it was registered, in a shared arena, where
// several openings of this process may have the slot; the last ends it.
void unregister_file(Arena* arena, int slot, const int* descriptor = nullptr);

// Blocks.
// ------------------------------------------------------------

// A free block with its data backed by memory, contents as the last user left them; -1: all taken,
// or no memory.
int take_block(Arena* arena);
// So many of them or none; those side by side are backed in one go.
bool take_blocks(Arena* arena, int* to, uint32_t n);
void give_block(Arena* arena, int block);  // nothing may be dirty in it
uint32_t free_blocks(const Arena* arena);  // roughly
void* data(const Arena* arena, int block);

// The block's byte 0 is byte `offset` of the file (kAtEnd: appended in the order of assign()).
// Clean so far.
void assign(Arena* arena, int block, int slot, uint64_t offset);
int slot_of(const Arena* arena, int block);
uint64_t offset_of(const Arena* arena, int block);

// Touching and overlapping ranges become one. A few ns when [lo, hi) lies in or continues the last
// range. Any number of ranges: past kRanges the block keeps a bit for each byte, until it is clean.
// False: there is no memory for these; write some out first.
bool mark_dirty(Arena* arena, int block, uint32_t lo, uint32_t hi);
// Rises before any of its bytes become clean: whoever reads the file, and then what is dirty, sees
// by it whether the two belong together.
uint32_t cleanings(const Arena* arena, int block);
// The first range of dirty bytes that ends behind `from`, cut to begin there at the earliest.
// False: there is none.
bool next_dirty(const Arena* arena, int block, uint32_t from, Range* to);
// The block has a map, not a list.
bool is_mapped(const Arena* arena, int block);
// What is dirty, by rising offset, of a block without a map. Number of ranges.
uint32_t dirty(const Arena* arena, int block, Range to[kRanges]);
bool is_dirty(const Arena* arena, int block);
// The first byte from `from` on that is not dirty; the block's end when all are.
uint32_t first_clean(const Arena* arena, int block, uint32_t from);
// Whether all of [lo, hi) is dirty.
bool is_all_dirty(const Arena* arena, int block, uint32_t lo, uint32_t hi);
// [lo, hi) has been written (or has become pointless: truncate). False when a hole in the middle of
// a range finds no room, and no memory for a map; then everything that was dirty stays so.
bool mark_clean(Arena* arena, int block, uint32_t lo, uint32_t hi);
inline bool mark_clean(Arena* arena, int block) { return mark_clean(arena, block, 0, UINT32_MAX); }

// Appending (kAtEnd): before the bytes of the block's first dirty range are written at the end of
// the file, where the file ended just then. After the death of the process the daemon looks there
// whether they arrived, so that nothing is written twice. Each piece that has been written is
// marked clean, and announced anew, before the next.
void begin_append(Arena* arena, int block, uint64_t file_bytes);

// Shared arenas.
// ------------------------------------------------------------

// True: the last owner died with it, or does not go on; its dirty ranges hold, bytes outside of
// them may be half written.
bool lock_block(Arena* arena, int block);
// The same for who need not have it. False: its owner lives and does not go on.
bool lock_block_patiently(Arena* arena, int block);
bool try_lock_block(Arena* arena, int block);
void unlock_block(Arena* arena, int block);
void free_block_of_dead(Arena* arena, int block);  // its lock, if the owner is dead
// No block's lock is had while a request is at the file. What keeps two from writing the same bytes
// at once, the older ones last, is this lock of the caller's, in the extra part: the daemon takes
// it before it writes bytes of the block, as everybody else must.
void set_writer(Arena* arena, int block, const node::Lock* lock);

}  // namespace weir::writeback
