// SPDX-License-Identifier: Apache-2.0
#include "layers/event/declared.h"

#include "base/clock.h"
#include "trace/log.h"
#include "layers/machinery/stack/file.h"

namespace weir::layers {
namespace {

using namespace stack;
using namespace event_declared;
using wire::Op;

struct Passing {
  Op op;
  uint64_t offset;  // wire::kUnknownOffset: at the kernel's position
  uint64_t wanted;
  bool moves;  // the result is a number of bytes
};

// In no total of the program's calls, whoever's thread it is: hence both flags, always.
template <typename Below>
WEIR_INLINE Result passing(const Layer& layer, const Passing& what, Below below) {
  if (WEIR_UNLIKELY(!trace::recording())) return below();
  const uint64_t start = base::ticks();
  const Result result = below();
  trace::Call call{what.op,
                   wire::event_at(layer.position),
                   wire::kBelow | wire::kNested,
                   0,
                   layer.file->name,
                   start,
                   base::ticks(),
                   what.offset <= wire::kUnknownOffset ? what.offset : wire::kUnknownOffset,
                   what.wanted};
  if (result < 0) {
    call.flags |= wire::kError;
    call.error = static_cast<uint8_t>(-result < 255 ? -result : 255);
  } else if (what.moves) {
    call.size = static_cast<uint64_t>(result);
    if (call.size < what.wanted) call.flags |= wire::kShort;
  }
  trace::record_call(call);
  return result;
}

Result read(Layer& layer, const Transfer& t) {
  return passing(layer, {Op::kPread, t.offset, t.bytes, true},
                 [&] { return read_below(layer, t); });
}

Result write(Layer& layer, const Transfer& t) {
  return passing(layer, {Op::kPwrite, t.offset, t.bytes, true},
                 [&] { return write_below(layer, t); });
}

// What layers ask the system for; not what they answer themselves, or know from the program's own
// fstat.
Result size(Layer& layer) {
  const bool asks = layer.next.size->below == nullptr && stat_of_program == nullptr;
  if (!asks) return size_below(layer);
  return passing(layer, {Op::kFstat, wire::kUnknownOffset, 0, false},
                 [&] { return size_below(layer); });
}

Result truncate(Layer& layer, uint64_t bytes) {
  return passing(layer, {Op::kFtruncate, wire::kUnknownOffset, bytes, false},
                 [&] { return truncate_below(layer, bytes); });
}

Result sync(Layer& layer, bool data_only) {
  const Op op = data_only ? Op::kFdatasync : Op::kFsync;
  return passing(layer, {op, wire::kUnknownOffset, 0, false},
                 [&] { return sync_below(layer, data_only); });
}

}  // namespace

const Kind kEvent = {
    .name = kName, .flags = 0, .state_bytes = 0, .statistics_count = kStatistics, .create = nullptr,
    .open = nullptr, .ready = nullptr, .read = read, .write = write, .size = size,
    .truncate = truncate, .flush = nullptr, .sync = sync, .invalidate = nullptr, .close = nullptr,
};

}  // namespace weir::layers
