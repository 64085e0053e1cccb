// SPDX-License-Identifier: Apache-2.0
// Requests that are under way: what a wait for them waits for. A table of fixed size: what finds no
// room is waited for without a peer.
#pragma once

#include <stdint.h>

#include "hook/mpi/communicators.h"

namespace weir::hook {

struct Request {
  Handle handle;      // of the request, or of the message that a probe matched
  Awaited awaited;
  bool persistent;    // stays when it is done,
  bool active;        // and is begun again
  uint32_t name;      // of the communicator
  Communicator* on;   // which may have another name by now: then it is gone
  Handle group;       // its handle
  uint64_t offset;    // as records have it: the peer's rank in MPI_COMM_WORLD, or the collective's
                      // sequence
  uint64_t bytes;
  const void* made;   // where MPI puts the communicator that this request brings, null: none
  bool of_fortran;    // and in whose handles
};

// Whether its communicator is still the one of that name.
inline bool is_alive(const Request& of) { return of.on != nullptr && of.on->name == of.name; }

void remember(const Request& request);
// What it is, and for one that is not persistent it is known no more. Awaited::nothing: not known,
// or not begun.
Request take_request(Handle handle);
void start_request(Handle handle);   // a persistent one
void forget_request(Handle handle);  // whatever it is

}  // namespace weir::hook
