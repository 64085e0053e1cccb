// SPDX-License-Identifier: Apache-2.0
// What the preload library looks up at run time and a linked program has from the linker, or not at
// all: MPI and libgfortran keep their own functions, so a rank's rank comes from the launcher's
// environment.
#include <errno.h>

#include "layers/cache/cache.h"
#include "hook/mpi/mpi.h"
#include "hook/mpi/between.h"
#include "hook/mpi/file.h"
#include "hook/own_calls.h"
#include "hook/real.h"
#include "hook/redirect.h"

WEIR_DECLARE(ssize_t, read, int fd, void* to, size_t n);

namespace weir::hook {

constinit int mpi_barriers = 0, mpi_wait_s = 0;
constinit bool mpi_events_wanted = false;

void set_hints(const rules::Rules&, int) {}
bool has_hints() { return false; }

void want_between(const rules::Rules&) {}
void leave_between() {}

void process_ends_with_requests() {}
void forget_requests() {}

void resolve_libc() {}
void begin_redirecting() {}
ClockFunction kernel_clock() { return nullptr; }
bool makes_calls_on_files(char*, size_t) { return false; }

// A thread can be cancelled where the program is linked with what cancels it; pthread_testcancel
// alone may not be, and libc's read is a cancellation point, too.
void (*find_test_for_cancel())() {
  return [] {
    const int before = errno;
    WEIR_REAL(read)(-1, nullptr, 0);
    errno = before;
  };
}

long missing() {
  errno = ENOSYS;
  return -1;
}

}  // namespace weir::hook

// The cache that ranks share is not linked into static programs: no layer of theirs uses it.
namespace weir::cache {
void forked() {}
}  // namespace weir::cache
