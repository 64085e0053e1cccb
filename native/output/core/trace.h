// SPDX-License-Identifier: Apache-2.0
// What output does, reported to a recorder that is in the process: a function weir_output_event,
// found once by name (libweir-preload.so has one: native/hook/output.cc). Without one an event
// costs a comparison. Which event means what in a trace: docs/formats/trace.md, 3.6.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "output/core/status.h"

namespace weir::output {

enum class Event : int {
  kPut = 1,         // a rank of the model: one field into its buffer
  kLend = 2,        // the same for a buffer that the program was handed
  kWait = 3,        // within put or lend: the buffer's last frame is not written yet
  kEndStep = 4,     // all of weir_end_step
  kAgree = 5,       // within it: for the other ranks of the model
  kFinalize = 6,    // all of weir_finalize
  kDefine = 7,      // the end of definitions; what: mode, groups, route
  kGet = 8,         // reading back; what: the file
  kServe = 9,       // the whole life of a server; what: its group
  kFrame = 10,      // one frame by the first owner of the group that writes it; what: the file
  kPart = 11,       // the same by another owner of that group
  kAccumulate = 12, // a step of a mean, minimum, ... that has no frame
  kClose = 13,      // files that are complete at the end; for each field of a file that is: what:
                    // FIELD:LEAST:MOST, bits that were kept; bytes: in the file
  kFetch = 14,      // within a frame, slab by slab: waiting for pieces of other nodes
  kTranspose = 15,  // putting pieces in the order of the file, with conversion
  kEncode = 16,     // compressing a chunk
  kWrite = 17,      // writing a slab; encoding lies within it
};

// An event begins (begun 0): gives a timestamp that is not 0, or 0 when nobody records; it ends
// (begun: that timestamp) in the same thread. bytes and error (a WEIR_E_* code, 0: none) count at
// the end. Strings live for the call only.
using EventSink = uint64_t (*)(int event, uint64_t begun, const char* stream, const char* what,
                               int64_t bytes, int error);
EventSink event_sink();

// The event of a scope. Nothing is copied when nobody records.
class Traced {
 public:
  // Without stream and what they are those of the event around it in this thread, if any.
  explicit Traced(Event event, std::string_view stream = {}, int64_t bytes = 0,
                  std::string_view what = {})
      : event_(event), bytes_(bytes) {
    if (event_sink() != nullptr) begin(stream, what);
  }
  ~Traced() {
    if (begun_ != 0) end();
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;

  void about(std::string_view what) {
    if (begun_ != 0) what_ = what;
  }
  // Passes the outcome on.
  Status ended(Status status) {
    error_ = status.code();
    return status;
  }

 private:
  void begin(std::string_view stream, std::string_view what);
  void end();

  const Event event_;
  const Traced* around_ = nullptr;
  std::string stream_, what_;
  int64_t bytes_;
  int error_ = 0;
  uint64_t begun_ = 0;
};

}  // namespace weir::output
