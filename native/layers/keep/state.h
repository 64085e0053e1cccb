// SPDX-License-Identifier: Apache-2.0
// What keep knows of one file, and what its files share. A file's state is touched with the file's
// lock held.
#pragma once

#include "layers/writeback/arena.h"
#include "layers/flush_timer/flush_timer.h"
#include "layers/keep/declared.h"
#include "layers/machinery/pool/pool.h"
#include "layers/machinery/stack/file.h"
#include "layers/machinery/stack/layer.h"

namespace weir::layers::keep {

using namespace keep_declared;
using stack::Layer;
using stack::Result;

inline constexpr uint32_t kBlockBytes = 64u << 10;
inline constexpr uint32_t kFilesOfArena = 512;

struct State {
  bool appends;      // the file is open for appending: what is written may wait
  bool knows_size;
  bool registered;
  int slot;
  int block;         // -1: none
  uint32_t filled;   // of the block
  uint32_t written;  // of these, by now
  uint64_t size;     // of the file with what waits
  uint8_t age;       // ticks
  flush_timer::Member waiting;
};

// Gone in a forked child, where arena and threads are the parent's.
struct Shared {
  uint32_t lock;
  writeback::Arena* arena;
  flush_timer::List waiting;
  pool::Job sweep;
};

inline State& state(Layer& l) { return *static_cast<State*>(l.state()); }
inline void count(Layer& l, Statistic what, uint64_t n = 1) { l.statistics[what] += n; }

// flush_timer.cc
Shared* shared();
writeback::Arena* arena(uint64_t bytes);
void begin_waiting(Layer&);
void end_waiting(Layer&);
void sweep_soon();

// keep.cc: writes what waits; 0 or -errno (then the bytes are lost and counted).
Result write_out(Layer&);

}  // namespace weir::layers::keep
