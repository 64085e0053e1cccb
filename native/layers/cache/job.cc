// SPDX-License-Identifier: Apache-2.0
#include "layers/cache/job.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/text.h"
#include "base/syscall.h"

namespace weir::cache {
namespace {

// Of one launcher: ranks on this node, ranks of the job.
struct Launcher {
  const char* local;
  const char* all;
};
constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"},
    {"MPI_LOCALNRANKS", "PMI_SIZE"},
    {"MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE"},
    {"PALS_LOCAL_SIZE", "PALS_NRANKS"},
    {"SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NUM_TASKS"},  // "8" or "8(x2),4": of the first nodes
};

uint32_t number(const char* name) {
  const char* text = getenv(name);
  if (text == nullptr) return 0;
  uint32_t value = 0;
  for (; *text >= '0' && *text <= '9' && value < 1'000'000; ++text)
    value = value * 10 + static_cast<uint32_t>(*text - '0');
  return value;
}

uint32_t processors() {
  uint64_t mask[128] = {};
  const long bytes =
      base::system_call(SYS_sched_getaffinity, 0, sizeof mask, reinterpret_cast<long>(mask));
  uint32_t n = 0;
  for (long i = 0; i < bytes / 8; ++i) n += static_cast<uint32_t>(__builtin_popcountll(mask[i]));
  return n > 0 ? n : 1;
}

Job find_job() {
  uint32_t local = 0, all = 0;
  for (const Launcher& launcher : kLaunchers) {
    local = number(launcher.local);
    all = number(launcher.all);
    if (local != 0) break;
  }
  const uint32_t emulated = number("WEIR_NODE_RANKS");
  const bool launched = local != 0;
  if (!launched) {  // no parallel launcher: processes that the program starts by itself, as many as
                    // there are processors
    local = processors();
    all = emulated != 0 && all != 0 ? all : local;
  }
  if (all < local) all = local;
  const bool one_host = all == local;
  if (emulated != 0) local = emulated < all ? emulated : all;
  const uint32_t nodes = (all + local - 1) / local;
  return {local, nodes > 0 ? nodes : 1, one_host && emulated != 0, launched};
}

constinit uint32_t known = 0;
constinit Job the_job{};

}  // namespace

const Job& job() {
  if (base::load(&known) == 0) {
    the_job = find_job();  // whoever does it at the same time finds the same
    base::store(&known, 1u);
  }
  return the_job;
}

}  // namespace weir::cache
