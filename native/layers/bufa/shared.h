// SPDX-License-Identifier: Apache-2.0
// What all files of the process under bufa share: arenas by block size, and the list of files with
// dirty blocks. Gone in a forked child, where arenas and threads are the parent's.
#pragma once

#include "layers/writeback/arena.h"
#include "layers/flush_timer/flush_timer.h"
#include "layers/machinery/pool/pool.h"

namespace weir::layers::bufa {

// Block sizes in use at once; files of further ones write through.
inline constexpr int kArenas = 16;
// Address space of one; memory is taken as blocks are.
inline constexpr uint64_t kArenaBytes = 4ull << 30;
inline constexpr uint32_t kFilesOfArena = 1024;

struct Shared {
  uint32_t lock;   // of the arenas
  struct {
    writeback::Arena* arena;
    uint64_t block_bytes;
  } arenas[kArenas];
  flush_timer::List dirty;
  pool::Job soon;  // for full blocks
  uint32_t looking_soon;
};

Shared* shared();  // null: no memory
writeback::Arena* arena_for(uint64_t block_bytes);

}  // namespace weir::layers::bufa
