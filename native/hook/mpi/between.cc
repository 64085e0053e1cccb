// SPDX-License-Identifier: Apache-2.0
#include "hook/mpi/between.h"

#include <string.h>

#include "layers/cache/between.h"
#include "layers/cache/job.h"
#include "layers/remote/transport.h"
#include "hook/mpi/handles.h"
#include "hook/mpi/needs.h"
#include "hook/observe.h"

namespace weir::hook {

constinit bool between_wanted = false;

namespace {

constexpr int kMultiple = 3;  // MPI_THREAD_MULTIPLE, of every implementation

constinit bool got_multiple = false;
constinit bool begun = false;

template <typename Function>
void find(Function& to, const char* name, bool* all) {
  to = reinterpret_cast<Function>(find_function(name, Library::mpi));
  *all = *all && to != nullptr;
}

bool has_global(const rules::Rules& rules) {
  for (uint32_t i = 0; i < rules.rule_count; ++i) {
    const rules::Stack& stack = rules.rules[i].stack;
    for (uint32_t k = 0; k < stack.count; ++k) {
      if (strcmp(stack.layers[k].name.data, "global") == 0) return true;
    }
  }
  return false;
}

// MPICH before 4.2 over UCX lets ranks wait at the end of MPI_Finalize for others that make no
// progress any more (its pull request 6596): the more connections the program had, the likelier it
// is that it never ends. It gets no more of them from here.
bool may_hang_at_its_end() {
  int major = 0, minor = 0;
  const char* const text = mpi_version();
  const char* at = strstr(text, "MPICH Version:");
  if (at == nullptr || strstr(text, "ch4:ucx") == nullptr) return false;
  for (at += sizeof "MPICH Version:" - 1; *at == ' ' || *at == '\t';) ++at;
  for (; *at >= '0' && *at <= '9'; ++at) major = major * 10 + (*at - '0');
  if (*at == '.') ++at;
  for (; *at >= '0' && *at <= '9'; ++at) minor = minor * 10 + (*at - '0');
  return major < 4 || (major == 4 && minor < 2);
}

bool is_forced() { return cache::wished_way() == cache::Way::kMessages; }

// Open MPI before 5 has windows over plain networks only below MPI_THREAD_MULTIPLE: a program that
// may make windows keeps its level.
bool may_raise() {
  if (is_forced()) return true;
  if (may_hang_at_its_end()) return false;
  return open_mpi_object("ompi_mpi_comm_world") == 0 || !program_needs("MPI_Win_", "mpi_win_");
}

void find_all(remote::Mpi& mpi, bool open_mpi, bool* all) {
  mpi.byte = open_mpi ? open_mpi_object("ompi_mpi_byte") : kMpichByte;
  mpi.errors_return = open_mpi ? open_mpi_object("ompi_mpi_errors_return") : kMpichErrorsReturn;
  mpi.any_source = open_mpi ? -1 : -2;
  *all = mpi.byte != 0 && mpi.errors_return != 0;
  find(mpi.barrier, "PMPI_Ibarrier", all);
  find(mpi.send, "PMPI_Isend", all);
  find(mpi.receive, "PMPI_Irecv", all);
  find(mpi.cancel, "PMPI_Cancel", all);
  find(mpi.duplicate, "PMPI_Comm_dup", all);
  find(mpi.handle_errors, "PMPI_Comm_set_errhandler", all);
  find(mpi.free, "PMPI_Comm_free", all);
}

// What its calls do to files (MPI's own) is none of the program's.
void mark_thread() { trace::thread_log.flags_below = wire::kNested | wire::kBelow; }

}  // namespace

void want_between(const rules::Rules& rules) {
  cache::read_environment();
  const cache::Way way = cache::wished_way();
  if (way == cache::Way::kNone || cache::job().nodes < 2) return;
  between_wanted = (way == cache::Way::kMessages || !cache::job().one_host) && has_global(rules);
}

Level::Level(const char* function, int required) : required_(required), raised_(false) {
  if (!between_wanted || required >= kMultiple) return;
  raised_ = find_function(function, Library::mpi) != nullptr && may_raise();
}

int Level::asked() const { return raised_ ? kMultiple : required_; }

void Level::granted(int* provided) const {
  got_multiple = got_multiple || *provided >= kMultiple;
  if (raised_ && *provided > required_) *provided = required_;
}

void begin_between(uintptr_t world, int rank, int ranks, bool open_mpi) {
  if (begun || ranks < 2) return;
  begun = true;
  static remote::Mpi mpi;
  mpi.world = world;
  mpi.rank = rank;
  mpi.ranks = ranks;
  bool meets = true, all = true;
  find_all(mpi, open_mpi, &all);
  find(mpi.gather, "PMPI_Iallgather", &meets);
  find(mpi.test, "PMPI_Test", &meets);
  if (!meets || (open_mpi && mpi.byte == 0)) return;  // MPI 2: so it is for all ranks
  cache::begin_messages(mpi, all && got_multiple && (is_forced() || !may_hang_at_its_end()),
                        mark_thread);
}

void end_between() { remote::end(); }
void leave_between() { remote::stop(); }

}  // namespace weir::hook
