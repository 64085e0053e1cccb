// SPDX-License-Identifier: Apache-2.0
// What output does, told to a recorder that is in the process: a function weir_output_event, found once by name. Without one an event
// costs a comparison.
#pragma once

#include <cstdint>

namespace weir::output {

enum class Event : int { kPut = 1, kWait = 2, kFetch = 3, kTranspose = 4, kWrite = 5 };  // kWrite: encoding and writing of a slab

// Times are CLOCK_MONOTONIC. Strings live for the call only.
using EventSink = void (*)(int event, const char* stream, uint64_t start_ns, uint64_t end_ns, int64_t bytes);
EventSink event_sink();

uint64_t event_clock_ns();

class Traced {
 public:
  Traced(Event event, const char* stream, int64_t bytes) : event_(event), stream_(stream), bytes_(bytes) {
    if (event_sink() != nullptr) start_ns_ = event_clock_ns();
  }
  ~Traced() {
    if (EventSink sink = event_sink(); sink != nullptr) sink(static_cast<int>(event_), stream_, start_ns_, event_clock_ns(), bytes_);
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;

 private:
  Event event_;
  const char* stream_;
  int64_t bytes_;
  uint64_t start_ns_ = 0;
};

}  // namespace weir::output
