// SPDX-License-Identifier: Apache-2.0
// Communicators and windows by their handles: a name that all members have without a message, the
// number of collectives so far, and the ranks in MPI_COMM_WORLD. A table of fixed size; what finds
// no room, or was made in a way that is not followed, has a name of this process alone ("?"), which
// matches no other's.
#pragma once

#include <stdint.h>

#include "hook/mpi/form.h"
#include "hook/mpi/handles.h"

namespace weir::hook {

struct Communicator {
  static constexpr size_t kIdentityBytes = 112;
  uint32_t name;      // id of "mpi:identity:size" in the trace
  int rank, size;     // this rank's, and of the group that it belongs to
  int peers;          // ranks that messages may name: size, or those of the other group
  bool between;       // two groups
  bool as_world;      // the ranks are those of MPI_COMM_WORLD
  uint64_t sequence;  // of its next collective
  int* world_ranks;   // of its peers, once somebody asked
  char identity[kIdentityBytes];
};

// Where a communicator came from: a collective of its parent's.
struct Making {
  const Communicator* parent;
  uint64_t sequence;
  int color;
  Naming naming;
  bool window;
};

void begin_communicators(Handle world, int rank, int ranks);

// Null: it was not reported.
Communicator* find_communicator(Handle handle);
// Of a valid communicator (or window) that a call was made on: one that is not known yet gets a
// name of this process alone. Null: no room.
Communicator* meet_communicator(Handle handle, bool window);
// Of a new one. Null: there is none for this rank, or no room.
Communicator* add_communicator(Handle handle, const Making& making);
void forget_communicator(Handle handle);

inline uint64_t next_sequence(Communicator& on) {
  return base::fetch_add(&on.sequence, uint64_t{1});
}

// Rank in MPI_COMM_WORLD of a rank in it; -1: not known, or none. The communicator is alive.
int world_rank(Communicator& on, Handle handle, int rank);

// Says once on stderr that a table of fixed size is full, and what that means.
void say_that_it_is_full(bool& said, const char* what);

}  // namespace weir::hook
