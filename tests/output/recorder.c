// SPDX-License-Identifier: Apache-2.0
// A recorder for tests: says each event of libweir on standard output when the process ends.
#include <stdint.h>
#include <stdio.h>

enum { kEvents = 18 };

static struct {
  long begun, ended, failed;
  long long bytes;
} seen[kEvents];
static uint64_t timestamp = 100;

uint64_t weir_output_event(int event, uint64_t begun, const char *stream, const char *what,
                           int64_t bytes, int error) {
  if (event < 1 || event >= kEvents || begun > timestamp || !stream || !what) event = 0;
  if (!begun) {
    __atomic_fetch_add(&seen[event].begun, 1, __ATOMIC_RELAXED);
    return __atomic_add_fetch(&timestamp, 1, __ATOMIC_RELAXED);
  }
  // Events of a field or frame have a stream, those of all streams have none.
  int of_all = event >= 4 && event <= 9;
  if (of_all != !*stream && event != 13) event = 0;
  __atomic_fetch_add(&seen[event].ended, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&seen[event].failed, error != 0, __ATOMIC_RELAXED);
  __atomic_fetch_add(&seen[event].bytes, bytes, __ATOMIC_RELAXED);
  return 0;
}

__attribute__((destructor)) static void say(void) {
  static const char *const names[] = {
      "wrong", "put",   "lend", "wait",       "end_step", "agree", "finalize",  "define", "get",
      "serve", "frame", "part", "accumulate", "close",    "fetch", "transpose", "encode", "write"};
  for (int e = 0; e < kEvents; e++) {
    if (seen[e].begun != seen[e].ended || seen[e].failed)
      printf("event wrong %ld %ld\n", seen[e].begun, seen[e].ended);
    if (seen[e].ended) printf("event %s %ld %lld\n", names[e], seen[e].ended, seen[e].bytes);
  }
}
