// SPDX-License-Identifier: Apache-2.0
// Between the nodes of a job: blocks that one node has read reach the others without the file
// system. Each block has a home, a place in a store; a node that misses a block looks there, and if
// it is not there says that it is going to read it; the others wait for it, a bounded time. The
// protocol needs three operations on a home's memory (Reach): messages of MPI (apart.cc), or, for
// nodes emulated on one host, memory that they all map (host.cc). Everything in it is a copy of
// what files had; losing it costs time alone.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/compiler.h"
#include "layers/cache/cache.h"
#include "layers/remote/mpi.h"

namespace weir::cache {

// A place's head, as it lies in the store.
struct alignas(64) Place {
  uint64_t word;  // 0 free; else a state (2 bits), a count of uses (14), when it was claimed (16,
                  // of 128 ms) and a hash of key and block (32)
  uint64_t key, block;
  uint64_t since_ns;  // CLOCK_REALTIME when it was filled, for the order in which places are given
                      // to others
  int64_t bytes;      // that the file has of it
  uint64_t unused[3];
};

// How a rank reaches the store of node `home`. All are bounded in time; false: not reached, and not
// to be asked again.
struct Reach {
  void* context;
  bool (*get)(void* context, uint32_t home, uint64_t at, const iovec* to, int count);
  bool (*put)(void* context, uint32_t home, uint64_t at, const iovec* from, int count);
  bool (*swap)(void* context, uint32_t home, uint64_t at, uint64_t expected, uint64_t wanted,
               uint64_t* found);
  // Whether the calling thread may do these.
  bool (*may)(void* context);
  // Until the word there is another, at most so long. Null: there is no way but to ask again.
  void (*wait)(void* context, uint32_t home, uint64_t at, uint64_t word, uint64_t at_most_ns);
};

struct Between {
  Reach reach;
  uint32_t homes, places;  // places of each home, a multiple of kPlaceWays
  uint32_t place_bytes;    // room for a block
  uint32_t broken;         // reached somebody in vain: only the file system from now on
};

inline constexpr uint32_t kPlaceWays = 4;

inline uint64_t store_bytes(uint32_t places, uint32_t place_bytes) {
  return uint64_t{places} * (sizeof(Place) + place_bytes);
}

// Being read by another node, and this rank does not wait.
inline constexpr int64_t kBusy = -EAGAIN;

// Bytes of the block, kBusy, or -1: read it from the file, and tell by between_put (which knows
// whether this rank has said that it would).
int64_t between_get(Opening& o, const iovec* pieces, int count, uint64_t block);
void between_put(Opening& o, const iovec* pieces, int count, uint64_t block, int64_t got);

// How blocks of this size reach this rank from other nodes: by messages where the transport is up,
// else through memory where the job's nodes are emulated on one host. slots: of the rule, for all
// ranks of a node. Null: not at all, each node reads for itself.
Between* between_nodes(uint32_t slots, uint32_t place_bytes);

// A store in memory that all nodes of the job on this host map: for nodes emulated by
// WEIR_NODE_RANKS. Null: none.
Between* between_on_host(uint32_t nodes, uint32_t places, uint32_t place_bytes);

// [collective] When MPI has begun: finds out whether messages can carry blocks between this job's
// nodes (layers/remote/transport.h).
void begin_messages(const remote::Mpi& mpi, bool able, void (*in_thread)());
// What WEIR_BETWEEN asks for: nothing, or one way and no other.
enum class Way : uint8_t { kAny, kNone, kMessages };
Way wished_way();
// Reads it, and what the job's launcher says, once: when the library is loaded, since later calls
// may come from a handler, or while a program changes its environment.
void read_environment();

// Bumped at barriers of the whole job: who has files open looks whether others changed them.
extern WEIR_OWN uint32_t barriers;
// Openings of this process whose files ranks on other nodes may have as well: while there are none
// barriers are left alone.
extern WEIR_OWN uint32_t shared_between_nodes;

}  // namespace weir::cache
