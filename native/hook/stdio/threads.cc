// SPDX-License-Identifier: Apache-2.0
// Whether the program has threads: as long as it has one alone, streams need no locks. weir's own
// threads do not touch streams. And whether it cancels any.
#include <pthread.h>
#include <threads.h>

#include "base/section.h"
#include "hook/stdio/layered_stream.h"
#include "hook/real.h"
#include "layers/machinery/stack/cancel.h"

extern "C" {
extern char __libc_single_threaded
    __attribute__((weak));  // glibc 2.32 and later; made false by the first thread of any kind
extern const char weir_begin[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
extern const char weir_end[] __asm__("_end") __attribute__((visibility("hidden")));
}

namespace weir::hook {

constinit uint32_t threads_seen = kNoThreads;
constinit const char never = 0;
constinit const char* single_threaded = &never;
constinit uint32_t quick_streams = 0;

namespace {

// libgomp, libstdc++ and MPI come by here as well.
void note_thread(const void* runs) {
  const char* const at = static_cast<const char*>(runs);
  if (at < weir_begin || at >= weir_end) {
    base::store(&threads_seen, uint32_t{kOtherThreads});
  } else {
    uint32_t none = kNoThreads;
    base::compare_exchange(&threads_seen, &none, uint32_t{kOwnThreads});
  }
  weigh_streams();
}

}  // namespace

void begin_streams() {
  if (&__libc_single_threaded != nullptr) single_threaded = &__libc_single_threaded;
}

// A trace begins before the first stream is layered or never, and with the first thread of the
// program's own they stay shared.
void weigh_streams() {
  if (cookie_functions == nullptr ||
      (base::load(&trace::pulse.alive) | base::load(&trace::wanted)) != 0)
    return;
  base::store(&quick_streams,
              base::load(&threads_seen) == kOwnThreads ? kQuiet | kUnshared : uint32_t{kQuiet});
  if (base::load(&threads_seen) == kOtherThreads) base::store(&quick_streams, uint32_t{kQuiet});
}

}  // namespace weir::hook

using weir::hook::note_thread;

WEIR_HOOK(int, pthread_create, pthread_t* thread, const pthread_attr_t* attributes,
          void* (*run)(void*), void* argument) {
  note_thread(reinterpret_cast<const void*>(run));
  return WEIR_REAL(pthread_create)(thread, attributes, run, argument);
}
WEIR_HOOK(int, thrd_create, thrd_t* thread, thrd_start_t run, void* argument) {
  note_thread(reinterpret_cast<const void*>(run));
  return WEIR_REAL(thrd_create)(thread, run, argument);
}

// From now on all threads pass cancellation points: libc alone knows which of them are to end.
WEIR_HOOK(int, pthread_cancel, pthread_t thread) {
  using Test = void (*)();
  if (const Test test = weir::hook::find_test_for_cancel(); test != nullptr)
    weir::base::store(&weir::stack::test_for_cancel, test);
  weir::base::before_handler(0);
  return WEIR_REAL(pthread_cancel)(thread);
}
