// SPDX-License-Identifier: Apache-2.0
// Where libweir-preload.so begins and ends: reads the environment, opens the trace, hands over to
// the hooks.
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layers/writeback/client.h"
#include "hook/descriptors.h"
#include "hook/fork.h"
#include "hook/library/kernel_aio.h"
#include "hook/mpi/mpi.h"
#include "hook/mpi/between.h"
#include "hook/mpi/file.h"
#include "hook/observe.h"
#include "hook/own_calls.h"
#include "hook/real.h"
#include "hook/redirect.h"
#include "layers/machinery/node/registry.h"
#include "base/clock.h"
#include "base/section.h"
#include "base/syscall.h"
#include "layers/machinery/pool/pool.h"
#include "preload/environment.h"
#include "preload/kinds.h"
#include "preload/launch.h"
#include "preload/mounts.h"
#include "trace/log.h"
#include "trace/process.h"
#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/build.h"
#include "layers/machinery/stack/names_of_layers.h"
#include "layers/machinery/stack/process.h"
#include "layers/machinery/stack/table.h"

namespace weir::preload {
namespace {

constexpr int kStandardError = 2;
constinit bool loaded = false;  // by the dynamic linker: then the destructor will run

void say(const Options& options, const char* what, base::Text on, const char* why) {
  // One voice is enough for a parallel program: the first rank speaks, and nobody it starts.
  if (options.quiet || options.rank > 0) return;
  char message[1024];
  base::Writer text(message, sizeof message);
  text.add("weir: ").add(what).add(on).add(why).add("\n");
  base::say(kStandardError, text.view().data, text.view().size);
  setenv("WEIR_QUIET", "1", 1);
}

const char* reason(long error) {
  switch (-error) {
    case 13: return ": no permission; the program runs without a trace";
    case 1:
    case 40:
      return ": the node's trace file there is another user's, or a link; the program runs without "
             "a trace";
    case 12:
      return ": no memory (ulimit -v) or no descriptor to spare (ulimit -n); the program runs "
             "without a trace";
    case 24: return ": no descriptor to spare; the program runs without a trace";
    case 2: return ": no such directory; the program runs without a trace";
    case 19:
      return ": the file system there maps no shared files (as FUSE with direct I/O); give a "
             "directory on another one, as /tmp; the program runs without a trace";
    case 20: return ": not a directory; the program runs without a trace";
    case 22:
      return ": holds a file that is not a trace of this version; the program runs without a trace";
    case 27:
      return ": no room below the limit on the size of files (ulimit -f); the program runs without "
             "a trace";
    case 28:
      return ": no space (disk full, or WEIR_BUDGET too small); the program runs without a trace";
    case 30: return ": read-only file system; the program runs without a trace";
  }
  return ": cannot be written; the program runs without a trace";
}

void begin_trace(const Options& options) {
  hook::mpi_barriers = options.mpi_barriers;
  hook::mpi_wait_s = options.mpi_wait_s;
  hook::mpi_events_wanted = options.mpi_events;
  trace::begin_logs();
  bool speaks = !options.quiet && options.rank <= 0;
  const long begun = trace::process().begin(options.settings, &speaks);
  if (begun < 0) {
    if (speaks) say(options, "cannot write a trace in ", options.settings.directory, reason(begun));
    return;
  }
  hand_on(trace::process().launch(), options.settings.launch.open);
  if (options.rank >= 0) {
    trace::process().set_rank(options.rank, options.ranks, wire::RankSource::kEnvironment,
                              wire::MpiKind::kNone);
    trace::process().set_world(options.world);
  }
  note_mounts();
}

// Rules of another version of weir may name layers that this library does not have: such a rule
// would do nothing.
bool knows_all_layers(const Options& options, const rules::Rules& rules) {
  for (uint32_t i = 0; i < rules.rule_count; ++i) {
    const rules::Stack& layers = rules.rules[i].stack;
    for (uint32_t k = 0; k < layers.count; ++k) {
      if (stack::find_kind(layers.layers[k].name) != nullptr) continue;
      say(options, "WEIR_RULES: this library has no layer ", layers.layers[k].name,
          "; the program runs without layers");
      return false;
    }
  }
  return true;
}

// What a program does by system calls of its own, no layer sees: what it writes has none, but for
// files that only their layers can read.
bool makes_own_calls(const Options& options) {
  char path[PATH_MAX];
  if (!hook::makes_calls_on_files(path, sizeof path)) return false;
  say(options, "", base::text(path[0] != 0 ? path : program_invocation_name),
      " makes system calls on files without the C library; what it writes has no layers");
  return true;
}

// Before the trace begins, and without one: what the program opens is under layers from its first
// open on.
bool begin_layers(const Options& options) {
  static rules::Rules rules;
  const char* mistake = nullptr;
  if (!rules::parse_environment(&rules, &mistake)) {
    char line[32];
    base::Writer text(line, sizeof line);
    text.add(" (line ").add_number(rules.mistake_line).add(")");
    say(options, "WEIR_RULES: ", base::text(mistake), line);
    return false;
  }
  if (rules.hint_count != 0) hook::set_hints(rules, options.rank);
  if (rules.rule_count == 0) return false;
  register_kinds();
  if (!knows_all_layers(options, rules)) return false;
  pool::begin();
  writeback::begin();
  stack::name_of_path = hook::path_at;
  node::read_lock_wait();
  node::on_dead_holder(writeback::hurry);
  stack::losses_are_said = !options.quiet;
  stack::begin(rules, options.rank, makes_own_calls(options));
  if (stack::any_layer_has_names()) base::follow_handlers();
  if (stack::names_mistake != nullptr)
    say(options, "layer stage: tier=", base::text(stack::names_mistake),
        "; the files of its rules are written at their place");
  hook::want_between(rules);
  return true;
}

void begin() {
  static char node[64];
  const Options options = read_environment(node, sizeof node);
  const bool layers = begin_layers(options);
  if (options.mistake != nullptr)
    say(options, options.mistake, {}, "; the program runs without a trace");
  if (!options.record && !layers) {
    if (hook::has_hints()) hook::begin_redirecting();  // MPI_File_open alone
    return;
  }
  base::clock_state = {base::counter_is_invariant(), options.skew_ns, hook::kernel_clock()};
  hook::resolve_libc();
  pthread_atfork(hook::before_fork, hook::after_fork_in_parent, hook::in_forked_child);
  if (options.record) begin_trace(options);
  hook::begin_redirecting();
}

bool last_part_begins(const char* path, base::Text with) {
  const char* slash = strrchr(path, '/');
  return strncmp(slash != nullptr ? slash + 1 : path, with.data, with.size) == 0;
}

// A job script under `weir env` may call weir itself (the next `weir env`, `weir report`): no I/O
// of the forecast.
bool is_weir_command(const char* program, const char* first) {
  return last_part_begins(program, base::text("python")) &&
         last_part_begins(first, {"weir", sizeof "weir"});
}

// glibc hands constructors the program's arguments.
__attribute__((constructor)) void at_load(int count, char** arguments) {
  loaded = true;
  if (trace::wanted != trace::kUndecided) return;
  const int before = errno;
  trace::wanted = 0;
  if (count < 2 || !is_weir_command(arguments[0], arguments[1])) begin();
  errno = before;
}

// Runs before the destructors of the libraries below (libgfortran's writes what it still holds):
// what they do is recorded all the same.
__attribute__((destructor)) void at_exit() {
  stack::at_end();
  hook::leave_between();
  stack::report_losses(kStandardError);
  hook::process_ends_with_requests();
  if (trace::recording()) trace::process().end(wire::End::kExit);
  writeback::remove_after_last();
}

}  // namespace
}  // namespace weir::preload

// Without the program's arguments, which libc keeps to itself. libc's constructor sets environ.
void weir::trace::decide_early() {
  if (environ == nullptr) return;
  const int before = errno;
  wanted = 0;
  char words[2 * PATH_MAX] = {};
  const long size = base::read_file("/proc/self/cmdline", words, sizeof words - 1);
  const char* const first = words + strlen(words) + 1;
  if (first >= words + size || !preload::is_weir_command(words, first)) {
    preload::begin();
    // The constructor of a library may end the process: this one's destructor does not run then.
    atexit([] {
      if (!preload::loaded) preload::at_exit();
    });
  }
  errno = before;
}
