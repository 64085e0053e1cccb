// SPDX-License-Identifier: Apache-2.0
// All ranks of a job, the model's and the servers', and what passes between two of them: short
// messages of control, pieces of data sent by the one that has them (Flight::send) or fetched by
// the one that wants them (Flight::fetch). Nothing here blocks but Team's collectives; who waits
// does so with Patience. All calls are made by the thread that called weir_init.
#pragma once

#include <optional>

#include "base/process.h"
#include "output/transport/team.h"

namespace weir::output {

struct Site {
  int node = 0;  // numbered by the lowest rank on them; WEIR_NODE_RANKS=k: k ranks make a node
  base::ProcessIdentity process{};
};

struct Message {
  int from = -1;
  std::vector<char> bytes;
};

// Memory of this rank that others may fetch from. Made by all ranks of the world together, each
// with its own memory or none.
class Window {
 public:
  virtual ~Window() = default;
  // [collective over the world] Without it, when a rank is lost, the window stays to the end of the
  // process.
  virtual void release() = 0;
  // What this rank has stored in its memory before is what a fetch that begins afterwards gets, and
  // not what it stores after this alone. MPI promises neither under MPI_WIN_SEPARATE.
  virtual Status sync() = 0;
  // For messages: "unified" or "separate".
  virtual const char* memory_model() const = 0;
};

// Pieces on their way. Pieces that one rank sends to another on one channel arrive in the order in
// which they were sent: a piece that could not be sent or received must be made up for before the
// next one. A piece whose call failed is not under way.
class Flight {
 public:
  // What is still under way is abandoned: memory that it receives or fetches into stays for the
  // life of the process.
  virtual ~Flight() = default;
  virtual Status send(int to, const void* data, int64_t bytes) = 0;
  virtual Status receive(int from, void* data, int64_t bytes) = 0;
  virtual Status fetch(Window& window, int from, int64_t offset, int64_t bytes, void* data) = 0;
  // Drives what was started; true when all of it has ended. After an error other pieces may be
  // under way still, until idle.
  virtual Result<bool> finished() = 0;
  // Nothing is under way: memory may be used again.
  virtual bool idle() const = 0;
};

// A lasting agreement of a team on the greatest of values, one after the other, which nobody waits
// for.
class Agreement {
 public:
  struct Outcome {
    int64_t greatest;
    bool same_place;  // on all ranks: else they have not come to this agreement by the same steps,
                      // and must come to no other one
  };
  // One that is under way is abandoned, and its team with it.
  virtual ~Agreement() = default;
  // [collective] No other one may be under way.
  virtual Status start(int64_t value, int64_t place) = 0;
  virtual Result<std::optional<Outcome>> poll() = 0;
};

class World {
 public:
  virtual ~World() = default;
  virtual Team& team() = 0;
  virtual const std::vector<Site>& sites() const = 0;
  virtual void set_time_limit(double seconds) = 0;
  virtual double time_limit() const = 0;

  // Takes a copy and returns at once. After a call that failed a message may come twice, or after a
  // later one: ReliableWorld makes up for it.
  virtual Status send(int to, std::span<const char> bytes) = 0;
  virtual Result<std::optional<Message>> receive() = 0;

  // channel: from 0; of the pieces that it sends and receives.
  virtual std::unique_ptr<Flight> flight(int channel) = 0;
  virtual std::unique_ptr<Agreement> agreement(Team& team) = 0;
  // [collective over the world]
  virtual Result<std::unique_ptr<Window>> window(void* memory, int64_t bytes) = 0;
  // [collective over the world] Whether a fetch ends while the rank that has the data is outside of
  // MPI; not when there are no windows.
  virtual Result<bool> fetches_progress() = 0;
  // [collective over the world] The last call of all but the destructor: takes what is still on its
  // way to this rank, so that what the world consists of can be let go. Without it that stays to
  // the end of the process.
  virtual void close() {}

  int rank() { return team().rank(); }
  int size() { return team().size(); }
};

}  // namespace weir::output
