// SPDX-License-Identifier: Apache-2.0
// A recorder for tests: says each event of libweir on standard output when the process ends.
#include <stdint.h>
#include <stdio.h>

static struct {
  long count;
  long long bytes;
} seen[8];

void weir_output_event(int event, const char *stream, uint64_t start_ns, uint64_t end_ns, int64_t bytes) {
  if (event < 1 || event > 7 || end_ns < start_ns || stream[0] != 'h') event = 0;
  seen[event].count++;
  seen[event].bytes += bytes;
}

__attribute__((destructor)) static void say(void) {
  static const char *const names[] = {"wrong", "put", "wait", "fetch", "transpose", "write"};
  for (int e = 0; e < 6; e++)
    if (seen[e].count) printf("event %s %ld %lld\n", names[e], seen[e].count, seen[e].bytes);
}
