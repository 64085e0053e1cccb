// SPDX-License-Identifier: Apache-2.0
// Three operations on memory of other nodes (get, put, compare-and-swap) by messages of the
// program's MPI. On each node one rank, the one of lowest rank, has the memory and serves it; a
// thread of its own does so, for MPI makes no progress while the program computes. In every rank
// that thread alone makes MPI's calls: a thread of the program that wants something waits for it, a
// bounded time, and never enters MPI. What is done late or fails turns the transport off in that
// rank, for good.
//
// MPI must have granted MPI_THREAD_MULTIPLE. The messages go over a duplicate of MPI_COMM_WORLD on
// which errors are returned.
#pragma once

#include <sys/uio.h>

#include "base/compiler.h"
#include "layers/remote/mpi.h"

namespace weir::remote {

inline constexpr uint64_t kMostBytes = 2u << 20;  // of one operation

// The memory of this rank, when it serves; by any thread. A store is a name that all ranks know.
// False: there is no such place.
struct Memory {
  bool (*get)(uint64_t store, uint64_t at, void* to, uint64_t bytes);
  bool (*put)(uint64_t store, uint64_t at, const void* from, uint64_t bytes);
  bool (*swap)(uint64_t store, uint64_t at, uint64_t expected, uint64_t wanted, uint64_t* found);
};

// [collective over the world] Who is where, and whether all of them can be reached: each rank asks
// another node while that one is outside of MPI. `able`: whether this rank may take part; unless
// all may, none does. `node` is the same for ranks of one node alone. True: the transport is up, in
// every rank. Otherwise it is off in every rank, and nothing is left of it.
bool begin(const Mpi& mpi, bool able, uint64_t node, uint32_t ranks, const Memory& memory,
           void (*in_thread)());
// [collective] Before MPI ends: nobody asks any more, the thread ends, the communicator is freed.
void end();
// The process ends without MPI_Finalize: the thread is gone after this, or 1 s has passed.
void stop();

// Whether operations can be had now, by this process (not in a forked child).
bool up();
uint32_t homes();       // nodes
uint32_t most_ranks();  // of any node, as they passed it to begin()

// Each is bounded in time. False: the transport is off now. Bytes: at most kMostBytes, from `skip`
// on in the pieces.
struct Pieces {
  const iovec* pieces;
  int count;
  uint64_t skip;
};
bool get(uint32_t home, uint64_t store, uint64_t at, const Pieces& to, uint64_t bytes);
bool put(uint32_t home, uint64_t store, uint64_t at, const Pieces& from, uint64_t bytes);
bool swap(uint32_t home, uint64_t store, uint64_t at, uint64_t expected, uint64_t wanted,
          uint64_t* found);

}  // namespace weir::remote
