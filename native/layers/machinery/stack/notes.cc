// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/notes.h"

#include <errno.h>

#include "base/text.h"
#include "base/clock.h"
#include "base/syscall.h"
#include "trace/log.h"
#include "trace/process.h"
#include "layers/machinery/stack/build.h"
#include "layers/machinery/stack/private.h"
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

// Lost bytes by file, for the report at the end. Past the last row they are counted there.
struct Loss {
  uint32_t state;  // 0 free, 1 being filled, 2 there
  int error;
  uint64_t device, inode;
  uint64_t bytes;
  char path[512];
};
// Standard error as it was when something was first lost: many programs close theirs before
// libraries end.
constinit int voice = -1;
constinit uint32_t has_voice = 0;

void keep_voice() {
  if (base::exchange(&has_voice, 1u) != 0) return;
  const long copy = base::system_call(SYS_fcntl, 2, F_DUPFD_CLOEXEC, 3);
  if (!base::failed(copy)) keep_private(static_cast<int>(copy), &voice);
}

constexpr int kLosses = 32;
constinit Loss losses[kLosses] = {};

// By its path, too: files of the layer pack lie in memory that they have one after the other.
bool is_same_loss(const Loss& loss, const File* f, int error) {
  return loss.device == f->device && loss.inode == f->inode && loss.error == error &&
         strncmp(loss.path, f->path, sizeof loss.path - 1) == 0;
}

void count_loss(const File* f, int error, uint64_t bytes) {
  for (Loss& loss : losses) {
    uint32_t state = base::load(&loss.state);
    if (state == 0 && base::compare_exchange(&loss.state, &state, 1u)) {
      loss.error = error;
      loss.device = f->device;
      loss.inode = f->inode;
      loss.bytes = bytes;
      base::Writer(loss.path, sizeof loss.path).add(f->path);
      keep_voice();
      base::store(&loss.state, 2u);
      return;
    }
    const bool last = &loss == &losses[kLosses - 1];
    if (state == 2 && (last || is_same_loss(loss, f, error))) {
      base::fetch_add(&loss.bytes, bytes);
      return;
    }
  }
}

const char* text_of(int error) {
  switch (error) {
    case EIO: return "input/output error";
    case ENOSPC: return "no space left on device";
    case EDQUOT: return "disk quota exceeded";
    case EFBIG: return "file too large";
    case ESTALE: return "stale file handle";
    case EROFS: return "read-only file system";
    case ENOMEM: return "no memory";
    case EBADF: return "descriptor closed unseen";
  }
  return nullptr;
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

void report_losses(int fd) {
  for (Loss& loss : losses) {
    if (base::load(&loss.state) != 2) continue;
    char message[1024];
    base::Writer text(message, sizeof message);
    text.add("weir: ")
        .add(loss.path)
        .add(": ")
        .add_number(base::load(&loss.bytes))
        .add(" bytes accepted were not written: ");
    if (const char* what = text_of(loss.error); what != nullptr) text.add(what);
    else text.add("error ").add_number(static_cast<uint64_t>(loss.error));
    text.add("\n");
    base::say(voice >= 0 ? voice : fd, text.view().data, text.view().size);
    base::store(&loss.state, 1u);
  }
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
