// SPDX-License-Identifier: Apache-2.0
#include "preload/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layers/machinery/node/lock.h"
#include "base/syscall.h"

namespace weir::preload {
namespace {

constexpr char kVariable[] = "WEIR_LAUNCH";
// Behind the number, as long as it is that of a script and not of a launcher.
constexpr char kOpen = '+';
// What starts the ranks of one job. Names may go on: mpirun.openmpi, mpiexec.hydra.
constexpr const char* kLaunchers[] = {"mpirun", "mpiexec", "orterun", "prterun",
                                      "srun",   "aprun",   "jsrun",   "palsrun"};
// What all ranks of one job have on all nodes, and no other job has; the first that is set. Of two
// names both.
struct Job {
  const char* first;
  const char* second;
};
constexpr Job kJobs[] = {
    {"OMPI_MCA_orte_hnp_uri", nullptr}, {"PMIX_NAMESPACE", nullptr},       {"PALS_APID", nullptr},
    {"FLUX_JOB_ID", nullptr},           {"SLURM_JOB_ID", "SLURM_STEP_ID"}, {"ALPS_APP_ID", nullptr},
};
// Of the batch system: several jobs of MPI may share one.
constexpr const char* kBatch[] = {"PBS_JOBID", "LSB_JOBID", "SLURM_JOB_ID", "JOB_ID"};

const char* value_of(const char* name) {
  const char* text = name != nullptr ? getenv(name) : nullptr;
  return text != nullptr && *text != 0 ? text : nullptr;
}

// Not 0, and short enough to be read again as a decimal number.
uint64_t number_of(uint64_t hash) { return hash << 4 >> 4 | 1; }
uint64_t number_of(const char* kind, base::Text what) {
  return number_of(base::hash(what, base::hash(base::text(kind), 0)));
}

uint64_t of_job() {
  for (const Job& job : kJobs) {
    const char* first = value_of(job.first);
    const char* second = value_of(job.second);
    if (first == nullptr || (second == nullptr && job.second != nullptr)) continue;
    base::Text text = base::text(first);
    // Jobs that a job's ranks start (MPI_Comm_spawn) are the same run: prterun-host-4711@2.
    for (size_t i = 0; i < text.size; ++i) {
      if (text.data[i] == '@') text.size = i;
    }
    const uint64_t number = number_of(job.first, text);
    return second == nullptr ? number : number_of(base::hash(base::text(second), number));
  }
  return 0;
}

uint64_t of_batch() {
  for (const char* name : kBatch) {
    if (const char* value = value_of(name)) return number_of(name, base::text(value));
  }
  return 0;
}

// Of processes of one node.
uint64_t of_processes(const char* kind, base::Text node, uint32_t a, uint32_t start, uint32_t b) {
  const uint32_t numbers[] = {a, start, b};
  return number_of(
      base::hash({reinterpret_cast<const char*>(numbers), sizeof numbers}, number_of(kind, node)));
}

uint32_t id(long call, long of = 0) { return static_cast<uint32_t>(base::system_call(call, of)); }

// All that a script starts has its group, but for what `timeout` and shells with job control start:
// these hand WEIR_LAUNCH on.
uint64_t of_group(base::Text node) {
  const uint32_t session = id(SYS_getsid);
  return of_processes("group", node, session, node::start_of(session), id(SYS_getpgid));
}

// What one rank's launcher says of none but itself: its parent, where that has started all ranks.
uint64_t of_parent(base::Text node, int ranks) {
  const char* local = value_of("MPI_LOCALNRANKS");
  int64_t here = 0;
  if (local == nullptr || !base::parse_number(base::text(local), &here) || here != ranks) return 0;
  const uint32_t parent = id(SYS_getppid);
  return of_processes("parent", node, parent, node::start_of(parent), 0);
}

// MPICH's proxy has started this rank: where it finds its mpiexec, which is the same on all nodes.
uint64_t of_proxy() {
  constexpr char kOption[] = "--control-port";
  char path[32], arguments[2048];
  base::Writer(path, sizeof path).add("/proc/").add_number(id(SYS_getppid)).add("/cmdline");
  const long fd = base::open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (base::failed(fd)) return 0;
  const long n = base::read_fd(static_cast<int>(fd), arguments, sizeof arguments - 1);
  base::close_fd(static_cast<int>(fd));
  if (n <= 0) return 0;
  arguments[n] = 0;
  for (const char* at = arguments; at < arguments + n; at += strlen(at) + 1) {
    const char* value = at + sizeof kOption;
    if (strcmp(at, kOption) == 0 && value < arguments + n)
      return number_of("proxy", base::text(value));
  }
  return 0;
}

bool is_launcher() {
  for (const char* name : kLaunchers) {
    const size_t size = strlen(name);
    if (strncmp(program_invocation_short_name, name, size) != 0) continue;
    const char end = program_invocation_short_name[size];
    if (end == 0 || end == '.') return true;
  }
  return false;
}

// As hand_on() writes it. False: it is not set.
bool handed_on(uint64_t* launch, bool* open) {
  int64_t number = 0;
  base::Text text = base::text(value_of(kVariable) != nullptr ? value_of(kVariable) : "");
  *open = text.size > 1 && text.data[text.size - 1] == kOpen;
  text.size -= *open ? 1 : 0;
  const bool known = text.size != 0 && base::parse_number(text, &number) && number >= 0;
  *launch = static_cast<uint64_t>(number);
  return known;
}

// The environment with this entry in place of those of its name.
void set_entry(const char* entry, size_t name_size) {
  size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) ++count;
  const long at =
      base::map((count + 2) * sizeof(char*), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(at)) return;
  auto** fresh = reinterpret_cast<const char**>(at);
  size_t used = 0;
  for (size_t i = 0; i < count; ++i) {
    if (strncmp(environ[i], entry, name_size) != 0) fresh[used++] = environ[i];
  }
  fresh[used] = entry;
  environ = const_cast<char**>(fresh);
}

}  // namespace

uint64_t find_world() {
  constexpr char kName[] = "PMIX_NAMESPACE";
  const char* name = value_of(kName);
  return name != nullptr ? number_of(kName, base::text(name)) : of_job();
}

// A number that no launcher has handed on is a script's, or that of a command such as `timeout`: of
// several launchers below each is a run of its own, and so is what an unseen one has started.
trace::Launch find_launch(base::Text node, int rank, int ranks) {
  trace::Launch launch{};
  launch.job = rank >= 0 ? of_job() : 0;
  const bool known = handed_on(&launch.number, &launch.open);
  if (known && launch.number == 0) launch.job = 0;
  if (known && (!launch.open || launch.number == 0)) return launch;
  if (rank >= 0) {
    launch.open = false;
    launch.number = launch.job != 0 ? launch.job : of_proxy();
    if (launch.number == 0) launch.number = of_parent(node, ranks);
    if (launch.number == 0) launch.number = of_batch();
    return launch;
  }
  if (!known) launch.number = of_group(node);
  launch.open = !is_launcher();
  if (!launch.open)
    launch.own = of_processes("launcher", node, node::self().pid, node::self().start, 0);
  return launch;
}

void hand_on(uint64_t launch, bool open) {
  static constinit char entry[sizeof kVariable + 22] = {};
  uint64_t before = 0;
  bool was_open = false;
  if (launch == 0 || (handed_on(&before, &was_open) && (before == 0 || !was_open))) return;
  base::Writer text(entry, sizeof entry);
  text.add(kVariable).add("=").add_number(launch);
  if (open) text.add(base::Text{&kOpen, 1});
  set_entry(entry, sizeof kVariable);
}

}  // namespace weir::preload
