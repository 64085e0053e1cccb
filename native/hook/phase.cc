// SPDX-License-Identifier: Apache-2.0
// Marks of phases, reported by the program through include/weir/phase.h: a record at the moment
// when a phase begins or ends, with its name.
#include "base/text.h"
#include "hook/observe.h"

namespace weir::hook {
namespace {

constexpr size_t kLongest = 256;  // what is longer is cut

// "phase:name": no absolute name, so no file.
uint32_t name_of(const char* phase) {
  char text[kLongest];
  base::Writer name(text, sizeof text);
  name.add("phase:").add(phase);
  return trace::process().names().id(base::text(text), wire::NameSource::kGiven);
}

}  // namespace
}  // namespace weir::hook

using namespace weir::hook;

// event 1: a phase begins, 2: it ends.
extern "C" __attribute__((visibility("default"))) void weir_phase_event(int event,
                                                                        const char* phase) {
  if (!recording() || phase == nullptr || event < 1 || event > 2) return;
  // Before the name is looked up: the mark is where the program set it.
  const uint64_t now = weir::base::ticks();
  record_call({event == 1 ? Op::kPhaseBegin : Op::kPhaseEnd, Layer::marker, 0, 0, name_of(phase),
               now, now, kUnknownOffset, 0});
}
