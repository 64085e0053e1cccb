// SPDX-License-Identifier: Apache-2.0
#include "output/engine/trace.h"

#include <dlfcn.h>
#include <time.h>

namespace weir::output {

EventSink event_sink() {
  static const EventSink sink = reinterpret_cast<EventSink>(dlsym(RTLD_DEFAULT, "weir_output_event"));
  return sink;
}

uint64_t event_clock_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace weir::output
