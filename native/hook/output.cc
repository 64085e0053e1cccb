// SPDX-License-Identifier: Apache-2.0
// What libweir tells of output (native/output/core/trace.h): an event becomes a record of layer
// output, and what is done within it to files bears the flag OUTPUT, so that it can be
// distinguished from the program's own I/O.
#include "base/text.h"
#include "hook/observe.h"

namespace weir::hook {
namespace {

constexpr int kFirst = static_cast<int>(Op::kOutputPut),
              kEvents = static_cast<int>(Op::kOutputWrite) - kFirst + 1;
constexpr size_t kLongest = 4600;  // the longest path, and a stream

WEIR_THREAD int depth = 0;  // events of this thread that have begun and not ended

// "output:stream:what": no absolute name, so no file; names of streams have no colon.
uint32_t name_of(const char* stream, const char* what) {
  char text[kLongest];
  base::Writer name(text, sizeof text);
  name.add("output:").add(stream);
  if (*what != 0) name.add(":").add(what);
  return trace::process().names().id(base::text(text), wire::NameSource::kGiven);
}

uint64_t begin() {
  if (depth++ == 0) trace::thread_log.flags_below |= wire::kOutput;
  const uint64_t now = base::ticks();
  return now != 0 ? now : 1;
}

void end(Op op, uint64_t begun, const char* stream, const char* what, int64_t bytes, int error) {
  const uint64_t now = base::ticks();
  const uint32_t file = name_of(stream, what);
  uint8_t flags = error != 0 ? uint8_t{wire::kError} : uint8_t{0};
  if (--depth != 0) flags |= wire::kNested;
  else trace::thread_log.flags_below &= static_cast<uint8_t>(~wire::kOutput);
  record_call({op, Layer::output, flags, static_cast<uint8_t>(error), file, begun, now,
               kUnknownOffset, static_cast<uint64_t>(bytes)});
}

}  // namespace
}  // namespace weir::hook

using namespace weir::hook;

extern "C" __attribute__((visibility("default"))) uint64_t weir_output_event(
    int event, uint64_t begun, const char* stream, const char* what, int64_t bytes, int error) {
  if (event < 1 || event > kEvents) return 0;
  if (begun == 0) return recording() ? begin() : 0;
  end(static_cast<Op>(kFirst + event - 1), begun, stream, what, bytes, error);
  return 0;
}
