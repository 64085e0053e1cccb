// SPDX-License-Identifier: Apache-2.0
#include "preload/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "preload/launch.h"

namespace weir::preload {
namespace {

constexpr uint64_t kDefaultBudgetBytes = uint64_t{4} << 30;
constexpr uint64_t kSmallestBudgetBytes = 64u << 10;

struct Launcher {
  const char* rank;
  const char* ranks;
};

// Most particular first. SLURM_PROCID is 0 in a batch script, too, so Slurm speaks only for what
// srun started, which alone has SLURM_STEP_NUM_TASKS. PMIx has no variable for the size.
constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},   {"PALS_RANKID", "PALS_NRANKS"},
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"},            {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

// mpirun starts its daemons on other nodes by srun: ranks of Slurm, but none of the program's.
constexpr const char* kDaemons[] = {
    "orted",         "prted",           "orterun",
    "prterun",       "mpirun",          "mpiexec",
    "mpiexec.hydra", "hydra_pmi_proxy", "hydra_bstrap_proxy",
    "srun",
};

bool same(const char* a, const char* b) { return strcmp(a, b) == 0; }

int small_number(const char* name, int otherwise) {
  int64_t value = 0;
  const char* text = getenv(name);
  if (text == nullptr || !base::parse_number(base::text(text), &value) || value < 0 ||
      value > INT32_MAX)
    return otherwise;
  return static_cast<int>(value);
}

void find_rank(Options& w) {
  w.rank = -1;
  w.ranks = 0;
  w.world = 0;
  for (const char* daemon : kDaemons) {
    if (same(program_invocation_short_name, daemon)) return;
  }
  for (const Launcher& launcher : kLaunchers) {
    const int rank = small_number(launcher.rank, -1);
    if (rank < 0) continue;
    const int ranks = small_number(launcher.ranks, 0);
    if (launcher.rank[0] == 'S' && ranks == 0) continue;  // in the batch script, outside of srun
    w.rank = rank;
    w.ranks = ranks;
    w.world = find_world();
    return;
  }
}

bool read_level(const char* text, wire::Level* level) {
  if (text == nullptr || *text == 0 || same(text, "trace")) *level = wire::Level::kTrace;
  else if (same(text, "detail")) *level = wire::Level::kDetail;
  else if (same(text, "summary")) *level = wire::Level::kSummary;
  else return false;
  return true;
}

// 0600 unless the run is shared. False: not a word of WEIR_SHARE.
bool read_share(const char* text, uint32_t* mode) {
  if (text == nullptr || *text == 0) *mode = 0600;
  else if (same(text, "group")) *mode = 0640;
  else if (same(text, "all")) *mode = 0644;
  else return false;
  return true;
}

}  // namespace

Options read_environment(char* node, size_t node_bytes) {
  Options w{};
  const char* directory = getenv("WEIR_TRACE_DIR");
  const char* quiet = getenv("WEIR_QUIET");
  w.quiet = quiet != nullptr && *quiet != 0 && !same(quiet, "0");
  find_rank(w);
  if (directory == nullptr || *directory == 0) return w;
  w.settings.directory = base::text(directory);
  if (directory[0] != '/') w.mistake = "WEIR_TRACE_DIR must be an absolute path";
  if (!read_level(getenv("WEIR_LEVEL"), &w.settings.level))
    w.mistake = "WEIR_LEVEL must be summary, detail or trace";

  if (!read_share(getenv("WEIR_SHARE"), &w.settings.mode))
    w.mistake = "WEIR_SHARE must be group or all";

  w.settings.budget_bytes = kDefaultBudgetBytes;
  const char* budget = getenv("WEIR_BUDGET");
  if (budget != nullptr && *budget != 0 &&
      (!base::parse_bytes(base::text(budget), &w.settings.budget_bytes) ||
       w.settings.budget_bytes < kSmallestBudgetBytes)) {
    w.mistake = "WEIR_BUDGET must be bytes, at least 64K, with an optional suffix K, M, G or T";
  }
  const char* name = getenv("WEIR_NODE");
  if (name != nullptr && *name != 0) {
    base::Writer(node, node_bytes).add(name);
  } else if (gethostname(node, node_bytes - 1) != 0) {
    base::Writer(node, node_bytes).add("node");
  }
  w.settings.node = base::text(node);
  w.settings.launch = find_launch(w.settings.node, w.rank, w.ranks);
  if (strchr(node, '/') != nullptr) w.mistake = "WEIR_NODE must not contain a slash";

  const char* skew = getenv("WEIR_CLOCK_SKEW_NS");
  if (skew != nullptr && *skew != 0 && !base::parse_number(base::text(skew), &w.skew_ns))
    w.mistake = "WEIR_CLOCK_SKEW_NS must be a whole number";
  w.mpi_barriers = small_number("WEIR_MPI_SYNC", 8);
  w.mpi_wait_s = small_number("WEIR_MPI_WAIT_S", 20);
  w.mpi_events = small_number("WEIR_MPI", 1) != 0;
  w.record = w.mistake == nullptr;
  return w;
}

}  // namespace weir::preload
