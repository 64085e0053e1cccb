// SPDX-License-Identifier: Apache-2.0
// The end of definitions: all ranks of the world agree on the catalogue, on who writes what, on
// memory, and on how each owner gets at each client's data. What comes of it does not change any
// more.
#pragma once

#include <memory>

#include "output/engine/layout.h"
#include "output/transport/segment.h"

namespace weir::output {

// How an owner gets a client's data.
enum class Route : char { kShared = 0, kRma = 1, kTwoSided = 2 };
const char* name_of(Route route);

// A client as an owner knows it.
struct ClientView {
  int rank = -1;  // in the world
  Route route = Route::kShared;
  std::unique_ptr<Segment> memory;  // kShared
  ClientLayout layout;
  std::vector<Pieces> pieces;  // by decomposition
};

struct Setup {
  Settings settings;
  Topology topology;
  Catalogue catalogue;
  Layout layout;

  // Of a client.
  int client = -1;
  Segment window;
  ClientLayout mine;
  std::vector<Pieces> pieces;                         // by decomposition
  std::vector<std::pair<int, Route>> owner_routes;    // by the owner's world rank, ascending

  // Of an owner.
  int group = -1, owner = -1;
  std::vector<Format*> formats;  // by stream
  std::vector<ClientView> clients;
  std::unique_ptr<Team> owners;  // of its group
  int64_t memory_bytes = 0;      // that it will use, plans and accumulators included

  std::unique_ptr<Window> rma;  // when a pair uses it

  Route route_to(int owner_rank) const;
  // Of a client: how long it may sleep while it waits for owners. Those that it sends to wait for
  // its calls of MPI.
  unsigned longest_pause_us() const;
};

// [collective over the world] On clients setup->catalogue and pieces are set, on all ranks settings
// and topology.
Status agree_setup(World& world, Setup* setup);

// [collective over the world] At the very end: the window and what the world consists of are let
// go. They stay when a rank does not come within the time limit.
void end_world(World& world, std::unique_ptr<Window>& window);

// What is left when a rank is lost, as far as this one knows: MPI_Finalize waits for all ranks
// without limit, and MPICH's makes no progress there for a rank that wakes late and still has
// something under way. So they meet before it, by end_world.
struct Unended {
  std::unique_ptr<World> world;
  std::unique_ptr<Window> window;  // null: none was made
};

}  // namespace weir::output
