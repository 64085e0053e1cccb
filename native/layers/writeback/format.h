// SPDX-License-Identifier: Apache-2.0
// The arena as it lies in shared memory (docs/formats/arena.md), and the messages to the daemon.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "layers/writeback/arena.h"
#include "layers/machinery/node/lock.h"
#include "layers/machinery/node/private.h"

namespace weir::writeback {

inline constexpr uint64_t kMagic = 0x316e726472696577;  // "weirdrn1"
inline constexpr uint32_t kVersion = 8;
inline constexpr uint32_t kPageBytes = 4096;

struct Header {
  uint64_t magic;  // last, when the rest is there
  uint32_t version, shared;
  uint32_t blocks, block_bytes, files;
  uint32_t blocks_used;  // entries of the table of blocks that are backed by memory, and were ever
                         // taken: the others are not looked at
  uint64_t files_at, blocks_at, extra_at, extra_bytes, data_at, total_bytes;
  uint64_t assignments;
  uint32_t generation;  // of the daemon that knows this arena; futex
  uint32_t take_from;   // where the search for a free block begins
  node::Lock lock;      // of registration, in shared arenas of joining and leaving
  uint32_t failed;      // the daemon could not write everything: kept for recovery
  uint32_t files_used;  // slots that were ever taken
  uint64_t
      maps_at;  // a bit for each byte of the data, used by blocks with more ranges than a list has
  node::Secret secret;  // of the directory that the arena was made in
  uint32_t orphaned;  // reported: dirty bytes for which no process has a file
  uint32_t reserved;
};
static_assert(sizeof(Header) <= kPageBytes);

// Behind the header: who takes part, and by the same number the run that each of them belongs to
// (node::run_number()), which stays when it has left. In an arena of one process entry 0 is the
// owner's.
inline node::Identity* participants_of(Header* h) {
  return reinterpret_cast<node::Identity*>(reinterpret_cast<char*>(h) + kPageBytes);
}
inline uint64_t* runs_of(Header* h) {
  return reinterpret_cast<uint64_t*>(participants_of(h) + kParticipants);
}

enum SlotState : uint32_t { kSlotFree, kSlotAsked, kSlotHeld, kSlotRefused };

struct FileSlot {
  uint32_t state;  // futex
  uint32_t generation;
  uint32_t append;
  uint32_t closing;  // 1: somebody waits until the daemon has closed its copy; futex
  uint64_t device, inode;
  uint64_t born_ns;  // when the file was made, where the file system keeps that; else 0. Numbers of
                     // inodes are used again
  uint32_t level;    // of the file's layer in its stack: the bytes of a lower one are written first
  uint32_t unused;
  uint64_t users[kParticipants / 64];
  char path[kPageBytes - 48 - kParticipants / 8];
};
static_assert(sizeof(FileSlot) == kPageBytes);

// Of a list's count: what is dirty stands in the block's map.
inline constexpr uint32_t kMapped = ~uint32_t{0};

struct List {
  uint32_t count, unused;
  uint64_t announced, expected;
  uint64_t ranges[kRanges];
};

struct alignas(64) Block {
  uint32_t taken, backed;
  node::Lock lock;
  int32_t slot;
  uint64_t offset, assignment;
  uint32_t active;
  uint32_t map_backed;  // its map has memory
  uint32_t cleanings;  // how often some of it became clean
  uint32_t writer;     // 1 + place among the words of the extra part of writer_of(); 0: none
  List lists[2];
};
static_assert(sizeof(Block) == 384);

// How many entries of the tables there are to look at, whoever wrote the header.
inline uint32_t blocks_used(const Header* h) {
  const uint32_t used = base::load(&h->blocks_used);
  return used < h->blocks ? used : h->blocks;
}
inline uint32_t files_used(const Header* h) {
  const uint32_t used = base::load(&h->files_used);
  return used < h->files ? used : h->files;
}

inline uint64_t packed(uint32_t lo, uint32_t hi) { return lo | uint64_t{hi} << 32; }
inline Range unpacked(uint64_t range) {
  return {static_cast<uint32_t>(range), static_cast<uint32_t>(range >> 32)};
}

enum MessageKind : uint32_t { kTellArena = 1, kTellFile, kTellWithdraw, kTellGone, kTellHurry };

inline constexpr uint32_t kMessageMagic = 0x72696577;
struct Message {
  uint32_t magic, kind, pid, start, slot, participant;
  char arena[64];
};

struct PulsePage {
  uint32_t word, generation, pid, start;
  node::Lock making;  // of shared arenas
  uint32_t pending;   // arenas of dead processes that are being drained; for who waits
  void* robust_next;  // the daemon's own (list of robust futexes)
};

inline constexpr int kOpenings = 8;  // of one file of a shared arena, registered by one process

// Of one block; blocks are whole pages, so that a map is whole words.
inline uint64_t map_bytes(uint32_t block_bytes) { return block_bytes / 8; }

// A mapped arena.
struct Arena {
  Header* header;
  FileSlot* slots;
  Block* blocks;
  uint64_t* maps;
  char* data;
  char* extra_data;
  // By slot: of this process's registrations; null in the daemon.
  const int* (*descriptors)[kOpenings];
  uint32_t block_bytes;
  uint32_t participant;
  uint64_t mapped_bytes;
  uint64_t handle_bytes;
  base::Identity file;
  char name[64];
};

// The lock that whoever writes the block's bytes to their file has meanwhile; null: there is none.
node::Lock* writer_of(const Arena* arena, int block);
// Points into a mapping whose header is there. False: it is none of ours, or torn.
bool attach(Arena* arena, void* mapping, uint64_t bytes);
// Backs part of the file with memory.
bool back(const Arena* arena, uint64_t offset, uint64_t bytes);

}  // namespace weir::writeback
