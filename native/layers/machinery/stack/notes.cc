// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/notes.h"

#include "base/clock.h"
#include "base/syscall.h"
#include "trace/log.h"
#include "trace/process.h"
#include "layers/machinery/stack/build.h"
#include "layers/machinery/stack/losses.h"
#include "layers/machinery/stack/process.h"

namespace weir::stack {
namespace {

constexpr uint8_t kBypassed = 180;  // wire/ops.def: kBypassedLargeRequests - 1, and so on
constexpr uint8_t kBypassedStreams = 180;  // there was no room behind the others
constexpr uint8_t kStatistic = 200;

void note(const File* f, const Layer* by, uint8_t op, int error, uint64_t size) {
  if (!trace::recording()) return;
  if (by == nullptr) by = f->top;
  if (by == nullptr) return;
  const uint64_t now = base::ticks();
  trace::Call call{static_cast<wire::Op>(op),
                   static_cast<wire::Layer>(wire::kNotes + number_of(*by->kind)),
                   0,
                   0,
                   f->name,
                   now,
                   now,
                   by->position,
                   size <= wire::kUnknownOffset ? size : wire::kUnknownOffset};
  if (error != 0) {
    call.flags |= wire::kError;
    call.error = static_cast<uint8_t>(error < 255 ? error : 255);
  }
  trace::record_call(call);
}

}  // namespace

void note_bypass(const File* f, const Layer* by, Reason reason) {
  const bool is_streams = reason == Reason::kStreams;
  const auto op = static_cast<uint8_t>(kBypassed + static_cast<uint8_t>(reason));
  note(f, by, is_streams ? kBypassedStreams : op, 0, 0);
}

void note_statistics(const File* f) {
  for (int i = 0; i < f->layer_count; ++i) {
    const Layer& l = f->top[i];
    for (int k = 0; k < l.kind->statistics_count; ++k) {
      if (l.statistics[k] != 0)
        note(f, &l, static_cast<uint8_t>(kStatistic + k), 0, l.statistics[k]);
    }
  }
}

void note_error(const File* f, const Layer* by, int error, uint64_t lost_bytes) {
  note(f, by, 240, error, lost_bytes);
  count_loss(f, error, lost_bytes);
}

void defer(File* f, const Layer* by, int error, uint64_t lost_bytes) {
  if (error == 0) return;
  int32_t none = 0;
  base::compare_exchange(&f->error, &none, static_cast<int32_t>(error));
  base::fetch_add(&f->lost_bytes, lost_bytes);
  if (by != nullptr) note_error(f, by, error, lost_bytes);
}

void ask_to_leave(Layer& layer, Reason reason) {
  uint8_t none = 0;
  if (!base::compare_exchange(&layer.file->leaving, &none, static_cast<uint8_t>(reason))) return;
  note_bypass(layer.file, &layer, reason);
}

void note_bypass(Layer& layer, Reason reason) { note_bypass(layer.file, &layer, reason); }

void defer_error(Layer& layer, int error, uint64_t lost_bytes) {
  defer(layer.file, &layer, error, lost_bytes);
}

}  // namespace weir::stack
