// SPDX-License-Identifier: Apache-2.0
// weir_init, weir_serve, weir_finalize: where a context begins and ends, and the only functions
// that see MPI's handles.
#include <weir/mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "output/api/context.h"
#include "output/engine/server/server.h"
#include "output/engine/session.h"
#include "output/transport/mpi/mpi_world.h"

namespace weir::api {
namespace {

using namespace weir::output;

struct MpiContext : weir_context {
  MPI_Comm model = MPI_COMM_NULL;
  std::vector<int> servers;  // ranks of MPI_COMM_WORLD
};

// Contexts that weir_finalize has not ended. MPI_Finalize lets go of MPI_COMM_SELF's attributes
// before all else: there the ones that were forgotten are seen.
std::vector<MpiContext*>& live_contexts() {
  static std::vector<MpiContext*> contexts;
  return contexts;
}

// Of contexts in which a rank was lost, on the model's ranks and on servers.
std::vector<output::Unended>& unended_worlds() {
  static std::vector<output::Unended> worlds;
  return worlds;
}

void keep_unended(std::optional<output::Unended> unended) {
  if (unended) unended_worlds().push_back(std::move(*unended));
}

int at_mpi_finalize(MPI_Comm, int, void*, void*) {
  for (MpiContext* context : live_contexts()) {
    int rank = 0;
    MPI_Comm_rank(context->model, &rank);
    if (rank == 0) {
      std::fprintf(stderr,
                   "weir: MPI_Finalize without weir_finalize: files that are not complete keep "
                   "their temporary names (.NAME.weir-part)\n");
    }
    context->session->abandon("came to MPI_Finalize without weir_finalize");
    keep_unended(context->session->take_unended());
  }
  live_contexts().clear();
  for (output::Unended& unended : unended_worlds()) end_world(*unended.world, unended.window);
  unended_worlds().clear();
  return MPI_SUCCESS;
}

void watch_for_mpi_finalize() {
  static int key = MPI_KEYVAL_INVALID;
  if (key != MPI_KEYVAL_INVALID) return;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_mpi_finalize, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

std::vector<int> in_world(MPI_Comm comm, std::vector<int> ranks) {
  MPI_Group from, to;
  MPI_Comm_group(comm, &from);
  MPI_Comm_group(MPI_COMM_WORLD, &to);
  std::vector<int> translated(ranks.size());
  MPI_Group_translate_ranks(from, static_cast<int>(ranks.size()), ranks.data(), to,
                            translated.data());
  MPI_Group_free(&from);
  MPI_Group_free(&to);
  return translated;
}

// Ranks that serve another context do not come to this one's weir_init: said here, where else all
// would wait.
Status check_nobody_serves(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  std::vector<int> all(static_cast<size_t>(size));
  for (int r = 0; r < size; ++r) all[static_cast<size_t>(r)] = r;
  all = in_world(comm, all);
  for (const MpiContext* other : live_contexts()) {
    for (int server : other->servers) {
      const auto at = std::find(all.begin(), all.end(), server);
      if (at == all.end()) continue;
      return {WEIR_E_ORDER, "weir_init: rank " + std::to_string(at - all.begin()) +
                                " of this communicator is a server of another context, which has "
                                "not been finalized; give weir_init the communicator of the model, "
                                "or call weir_finalize first"};
    }
  }
  return {};
}

// A rank that serves comes back when that context ends: the ranks of another one, in which it
// computes, would wait for its steps.
Status check_free_to_serve(int rank) {
  if (live_contexts().empty()) return {};
  return {WEIR_E_ORDER, "weir_init: rank " + std::to_string(rank) +
                            " of this communicator would be a server, but it computes in another "
                            "context, which has not "
                            "been finalized; call weir_finalize first, or give this context a mode "
                            "without servers (WEIR_OUTPUT_MODE, mode)"};
}

// Waits before the configuration is agreed upon end at the time limit that this rank's environment
// has, else at the default.
double limit_of_first_waits_s() {
  constexpr const char* kVariable = "WEIR_OUTPUT_TIME_LIMIT_S";
  Source source;
  if (const char* value = std::getenv(kVariable); value != nullptr && *value != '\0')
    source.environment.emplace_back(kVariable, value);
  const Result<Config> config = parse_config(source);
  return config.ok() ? (*config).settings.time_limit_s : Settings().time_limit_s;
}

Result<Config> agree_config(MpiWorld& world, const char* path) {
  std::vector<char> bytes;
  Status mine;
  if (world.rank() == 0) {
    Result<Source> source = load_source(path);
    mine = source.status();
    if (source.ok()) bytes = encode_source(*source);
  }
  WEIR_TRY(world.team().agree(mine));
  WEIR_TRY(world.team().broadcast(bytes, 0));
  Result<Source> source = decode_source(bytes);
  if (!source.ok()) return source.status();
  return parse_config(*source);
}

// The ranks that called weir_serve.
Result<std::vector<int>> find_named_servers(MpiWorld& world, bool named) {
  Result<std::pair<int64_t, int>> any = world.team().maximum(named ? 1 : 0);
  if (!any.ok()) return any.status();
  std::vector<int> servers;
  if (any->first == 0) return servers;
  const char flag = named ? 1 : 0;
  Result<std::vector<std::vector<char>>> flags = world.team().gather({&flag, 1}, 0);
  if (!flags.ok()) return flags.status();
  std::vector<char> all;
  for (const std::vector<char>& of_rank : *flags)
    all.insert(all.end(), of_rank.begin(), of_rank.end());
  WEIR_TRY(world.team().broadcast(all, 0));
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r] != 0) servers.push_back(static_cast<int>(r));
  }
  return servers;
}

Status begin(MPI_Comm comm, const char* path, bool named, MPI_Comm* model_comm,
             weir_context** context) {
  WEIR_TRY(check_nobody_serves(comm));
  Result<std::unique_ptr<MpiWorld>> made = MpiWorld::make(comm, limit_of_first_waits_s());
  if (!made.ok()) return made.status();
  MpiWorld& world = **made;
  Result<Config> config = agree_config(world, path);
  if (!config.ok()) return config.status();
  Result<std::vector<int>> named_servers = find_named_servers(world, named);
  if (!named_servers.ok()) return named_servers.status();
  Result<Topology> topology = make_topology(config->settings, world.sites(), *named_servers);
  if (!topology.ok()) return topology.status();
  world.set_time_limit(config->settings.time_limit_s);
  const bool computes = topology->client_of(world.rank()) >= 0;
  WEIR_TRY(world.team().agree(computes ? Status() : check_free_to_serve(world.rank())));
  if (config->settings.verbose && world.rank() == topology->clients[0])
    std::fprintf(stderr, "weir: %s\n", in_words(*topology).c_str());
  // MPI_Comm_split waits for all ranks without end: after one that has failed nobody begins
  // another.
  Result<MPI_Comm> model = world.split_for_model(computes);
  WEIR_TRY(world.team().agree(model.status()));
  Result<std::unique_ptr<Team>> team = world.team().split(computes ? 0 : -1, world.rank());
  WEIR_TRY(world.team().agree(team.status()));
  watch_for_mpi_finalize();
  if (!computes) {
    std::optional<output::Unended> unended;
    const Status served = serve(std::move(*made), config->settings, *topology, &unended);
    keep_unended(std::move(unended));
    return served;
  }
  auto owned = std::make_unique<MpiContext>();
  owned->model = *model;
  owned->config = std::move(*config);
  owned->team = team->get();
  for (const std::vector<int>& group : topology->groups) {
    if (topology->has_servers())
      owned->servers.insert(owned->servers.end(), group.begin(), group.end());
  }
  owned->servers = in_world(comm, owned->servers);
  owned->session = std::make_unique<Session>(std::move(*made), std::move(*team),
                                             owned->config.settings, std::move(*topology));
  live_contexts().push_back(owned.get());
  *model_comm = owned->model;
  *context = owned.release();
  return {};
}

// What remains of contexts that were finalized: handles lead to them, and calls with those must
// find out.
std::vector<std::unique_ptr<MpiContext>>& ended_contexts() {
  // Not destroyed: programs end in any order.
  static auto* contexts = new std::vector<std::unique_ptr<MpiContext>>;
  return *contexts;
}

Result<MpiContext*> take(weir_context** context, const char* call) {
  MpiContext* ending = static_cast<MpiContext*>(*context);
  *context = nullptr;
  WEIR_TRY(not_ended(*ending, call));
  std::erase(live_contexts(), ending);
  return ending;
}

// Files that are open are closed here, and their locks released.
void keep_ended(MpiContext* ending) {
  ending->team = nullptr;
  keep_unended(ending->session->take_unended());
  ending->session.reset();
  for (Decomposition& d : ending->catalogue.decompositions) d.indices = {};
  for (Grid& g : ending->catalogue.grids) g.lon = g.lat = {};
  ended_contexts().emplace_back(ending);
}

Status finalize(weir_context** context, weir_costs* costs) {
  Result<MpiContext*> ending = take(context, "weir_finalize");
  if (!ending.ok()) return ending.status();
  Status result = (*ending)->session->finalize();
  if (costs != nullptr) *costs = costs_of(**ending);
  if (result.code() != WEIR_E_LOST) MPI_Comm_free(&(*ending)->model);
  keep_ended(*ending);
  return result;
}

Status abandon(weir_context** context) {
  Result<MpiContext*> ending = take(context, "weir_abandon");
  if (!ending.ok()) return ending.status();
  (*ending)->session->abandon("has called weir_abandon");
  keep_ended(*ending);
  return {};
}

}  // namespace
}  // namespace weir::api

weir_context::weir_context() = default;
weir_context::~weir_context() = default;

extern "C" {

int weir_init(MPI_Comm world, const char* config, MPI_Comm* model_comm, weir_context** context,
              weir_error* err) {
  return weir::api::guarded(err, [&]() -> weir::output::Status {
    if (model_comm == nullptr || context == nullptr)
      return {WEIR_E_ARGUMENT, "weir_init: model_comm and context must not be null"};
    *model_comm = MPI_COMM_NULL;
    *context = nullptr;
    return weir::api::begin(world, config, false, model_comm, context);
  });
}

int weir_init_f(MPI_Fint world, const char* config, MPI_Fint* model_comm, weir_context** context,
                weir_error* err) {
  MPI_Comm model = MPI_COMM_NULL;
  const int code = weir_init(MPI_Comm_f2c(world), config, model_comm == nullptr ? nullptr : &model,
                             context, err);
  if (model_comm != nullptr) *model_comm = MPI_Comm_c2f(model);
  return code;
}

int weir_serve(MPI_Comm world, const char* config, weir_error* err) {
  return weir::api::guarded(err, [&]() -> weir::output::Status {
    MPI_Comm model = MPI_COMM_NULL;
    weir_context* context = nullptr;
    return weir::api::begin(world, config, true, &model, &context);
  });
}

int weir_serve_f(MPI_Fint world, const char* config, weir_error* err) {
  return weir_serve(MPI_Comm_f2c(world), config, err);
}

int weir_finalize(weir_context** context, weir_error* err) {
  return weir_finalize_costs(context, nullptr, err);
}

int weir_finalize_costs(weir_context** context, weir_costs* costs, weir_error* err) {
  return weir::api::guarded(err, [&]() -> weir::output::Status {
    if (costs != nullptr) *costs = {};
    if (context == nullptr)
      return {WEIR_E_ARGUMENT, "weir_finalize: the address of the context is null"};
    return *context == nullptr ? weir::output::Status() : weir::api::finalize(context, costs);
  });
}

int weir_abandon(weir_context** context, weir_error* err) {
  return weir::api::guarded(err, [&]() -> weir::output::Status {
    if (context == nullptr)
      return {WEIR_E_ARGUMENT, "weir_abandon: the address of the context is null"};
    return *context == nullptr ? weir::output::Status() : weir::api::abandon(context);
  });
}

}  // extern "C"
