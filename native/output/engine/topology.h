// SPDX-License-Identifier: Apache-2.0
// Which ranks compute and which write. The same on all ranks: a function of the settings and of
// where the ranks are.
#pragma once

#include <vector>

#include "output/config/config.h"
#include "output/transport/world.h"

namespace weir::output {

struct Topology {
  Mode mode = Mode::kSerial;
  // World ranks of the model, ascending; a client's number is its rank in the model.
  std::vector<int> clients;
  std::vector<std::vector<int>> groups;  // world ranks of the members of each group, its head
                                         // first; modes without servers: one group
  std::vector<int> owners;  // how many of each group's members, from the head on, write
  std::vector<int> node_of;              // by world rank

  bool has_servers() const { return mode == Mode::kServers || mode == Mode::kServersParallel; }
  // -1: not a client.
  int client_of(int world_rank) const;
  // The group of a server, or -1.
  int group_of(int world_rank) const;
  // The number of a server in its group.
  int member_of(int world_rank) const;
  // The member of a group that a client speaks with.
  int gate(int group, int client) const {
    return groups[static_cast<size_t>(group)]
                 [static_cast<size_t>(client) % groups[static_cast<size_t>(group)].size()];
  }
  // The group that writes a stream's file, of those that are there.
  static int group_of_file(int stream, int64_t file, const std::vector<int>& alive) {
    return alive[static_cast<size_t>((stream + file) % static_cast<int64_t>(alive.size()))];
  }
};

// named_servers: ranks that called weir_serve; when there are some, they are the servers, whatever
// the settings' numbers.
Result<Topology> make_topology(const Settings& settings, const std::vector<Site>& sites,
                               const std::vector<int>& named_servers);

// "8 ranks compute on 2 nodes; 2 groups of 1 member write: 4 | 9".
std::string in_words(const Topology& topology);

}  // namespace weir::output
