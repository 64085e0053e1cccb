// SPDX-License-Identifier: Apache-2.0
#include "output/engine/topology.h"

#include <algorithm>
#include <map>

namespace weir::output {

namespace {

// Up to this many ranks of each node write in mode collective, when the configuration does not say
// how many.
constexpr int kAggregatorsOfNode = 2;

std::vector<std::vector<int>> by_node(const std::vector<Site>& sites) {
  std::map<int, std::vector<int>> nodes;
  for (size_t r = 0; r < sites.size(); ++r) nodes[sites[r].node].push_back(static_cast<int>(r));
  std::vector<std::vector<int>> lists;
  for (auto& [number, ranks] : nodes) lists.push_back(std::move(ranks));
  return lists;
}

// The last ranks of each node, as many of each as can be, later nodes first where it does not come
// out even.
std::vector<int> last_of_nodes(const std::vector<std::vector<int>>& nodes, int servers) {
  std::vector<size_t> taken(nodes.size());
  for (int left = servers; left > 0;) {
    const int before = left;
    for (size_t n = nodes.size(); n-- > 0 && left > 0;) {
      // A node keeps a rank that computes while another node has ranks to give.
      if (taken[n] + 1 < nodes[n].size()) ++taken[n], --left;
    }
    if (left == before) {
      for (size_t n = nodes.size(); n-- > 0 && left > 0;) {
        if (taken[n] < nodes[n].size()) ++taken[n], --left;
      }
    }
  }
  std::vector<int> chosen;
  for (size_t n = 0; n < nodes.size(); ++n)
    chosen.insert(chosen.end(), nodes[n].end() - static_cast<int64_t>(taken[n]), nodes[n].end());
  return chosen;
}

std::vector<int> place_servers(Placement placement, const std::vector<Site>& sites, int servers) {
  const int size = static_cast<int>(sites.size());
  std::vector<int> chosen;
  switch (placement) {
    case Placement::kLast: return last_of_nodes(by_node(sites), servers);
    case Placement::kSpread:
      for (int64_t k = 0; k < servers; ++k)
        chosen.push_back(static_cast<int>((k + 1) * size / servers - 1));
      break;
    case Placement::kNodes: {
      std::vector<std::vector<int>> nodes = by_node(sites);
      while (static_cast<int>(chosen.size()) < servers) {
        for (int rank : nodes.back()) {
          if (static_cast<int>(chosen.size()) < servers) chosen.push_back(rank);
        }
        nodes.pop_back();
      }
      break;
    }
  }
  return chosen;
}

std::vector<int> choose_aggregators(const std::vector<Site>& sites, int64_t wanted) {
  const std::vector<std::vector<int>> nodes = by_node(sites);
  if (wanted == 0) {
    for (const std::vector<int>& node : nodes)
      wanted += std::min<int64_t>(kAggregatorsOfNode, static_cast<int64_t>(node.size()));
  }
  wanted = std::min<int64_t>(wanted, static_cast<int64_t>(sites.size()));
  std::vector<int> chosen;
  // Round after round one rank of each node, spread over its ranks.
  for (size_t round = 0; static_cast<int64_t>(chosen.size()) < wanted; ++round) {
    for (const std::vector<int>& node : nodes) {
      if (round < node.size() && static_cast<int64_t>(chosen.size()) < wanted)
        chosen.push_back(node[round]);
    }
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

Status check_aggregators(const Settings& settings, int64_t ranks) {
  if (settings.mode != Mode::kCollective || settings.aggregators <= ranks) return {};
  return {WEIR_E_CONFIG,
          "mode collective with aggregators = " + std::to_string(settings.aggregators) +
              " has only " + std::to_string(ranks) +
              " ranks; start more ranks, or lower aggregators (0: weir chooses)"};
}

Result<std::vector<int>> choose_servers(const Settings& settings, const std::vector<Site>& sites,
                                        const std::vector<int>& named) {
  if (!named.empty()) return named;
  const int64_t servers = settings.groups * settings.servers_per_group,
                size = static_cast<int64_t>(sites.size());
  if (servers >= size) {
    return Status{WEIR_E_CONFIG, std::string("mode ") + name_of(settings.mode) + " with " +
                                     std::to_string(settings.groups) + " groups of " +
                                     std::to_string(settings.servers_per_group) +
                                     " members takes " + std::to_string(servers) + " of the " +
                                     std::to_string(size) +
                                     " ranks, and leaves none to compute; start more ranks, or "
                                     "lower groups or servers_per_group"};
  }
  return place_servers(settings.placement, sites, static_cast<int>(servers));
}

}  // namespace

int Topology::client_of(int world_rank) const {
  const auto at = std::lower_bound(clients.begin(), clients.end(), world_rank);
  return at != clients.end() && *at == world_rank ? static_cast<int>(at - clients.begin()) : -1;
}

int Topology::group_of(int world_rank) const {
  for (size_t g = 0; g < groups.size(); ++g) {
    if (std::find(groups[g].begin(), groups[g].end(), world_rank) != groups[g].end())
      return static_cast<int>(g);
  }
  return -1;
}

int Topology::member_of(int world_rank) const {
  const int group = group_of(world_rank);
  if (group < 0) return -1;
  const std::vector<int>& members = groups[static_cast<size_t>(group)];
  return static_cast<int>(std::find(members.begin(), members.end(), world_rank) - members.begin());
}

Result<Topology> make_topology(const Settings& settings, const std::vector<Site>& sites,
                               const std::vector<int>& named_servers) {
  Topology t;
  t.mode = settings.mode;
  for (const Site& s : sites) t.node_of.push_back(s.node);
  if (!named_servers.empty() && !settings.has_servers()) {
    return Status{WEIR_E_CONFIG, std::string("ranks called weir_serve, but the mode is ") +
                                     name_of(settings.mode) +
                                     "; set mode to servers or servers+parallel"};
  }
  if (!settings.has_servers()) {
    WEIR_TRY(check_aggregators(settings, static_cast<int64_t>(sites.size())));
    for (size_t r = 0; r < sites.size(); ++r) t.clients.push_back(static_cast<int>(r));
    t.groups = {settings.mode == Mode::kSerial ? std::vector<int>{0}
                                               : choose_aggregators(sites, settings.aggregators)};
    t.owners = {static_cast<int>(t.groups[0].size())};
    return t;
  }
  Result<std::vector<int>> servers = choose_servers(settings, sites, named_servers);
  if (!servers.ok()) return servers.status();
  for (int r = 0; r < static_cast<int>(sites.size()); ++r) {
    if (std::find(servers->begin(), servers->end(), r) == servers->end()) t.clients.push_back(r);
  }
  if (t.clients.empty())
    return Status{WEIR_E_CONFIG, "all ranks called weir_serve: none is left to compute"};
  // Named servers that do not make whole groups: as many groups as there can be.
  const int64_t count = static_cast<int64_t>(servers->size()),
                groups = std::min(settings.groups, count);
  for (int64_t g = 0; g < groups; ++g) {
    t.groups.emplace_back(servers->begin() + count * g / groups,
                          servers->begin() + count * (g + 1) / groups);
    t.owners.push_back(settings.mode == Mode::kServers ? 1
                                                       : static_cast<int>(t.groups.back().size()));
  }
  return t;
}

std::string in_words(const Topology& t) {
  std::vector<int> nodes = t.node_of;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::string text = "mode " + std::string(name_of(t.mode)) + ": " +
                     std::to_string(t.clients.size()) + " ranks compute, on " +
                     std::to_string(nodes.size()) + " nodes; ranks that write:";
  for (size_t g = 0; g < t.groups.size(); ++g) {
    text += g == 0 ? "" : " |";
    for (size_t i = 0; i < t.groups[g].size(); ++i) {
      text += " " + std::to_string(t.groups[g][i]) +
              (static_cast<int>(i) >= t.owners[g] ? " (forwards)" : "");
    }
  }
  return text;
}

}  // namespace weir::output
