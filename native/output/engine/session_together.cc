// SPDX-License-Identifier: Apache-2.0
// The modes without servers: at the end of a step all ranks agree that the frames are complete,
// then those that write do so; the others go on. The next agreement says that this frame's slots
// are free, and what became of it.
#include <bit>

#include "output/engine/session.h"
#include "output/engine/writer.h"
#include "output/model/text.h"
#include "output/transport/patience.h"

namespace weir::output {

// The same number on all ranks that are at the same step, time and frames.
int64_t Session::place_in_time() const {
  uint64_t hash =
      std::bit_cast<uint64_t>(time_s_) ^ static_cast<uint64_t>(steps_) * 0x9e3779b97f4a7c15ULL;
  for (const Flow& flow : flows_) hash = (hash ^ (flow.active() ? 1 : 0)) * 0x100000001b3ULL;
  return static_cast<int64_t>(hash >> 1);
}

std::string Session::words_of_step() const {
  return "step " + std::to_string(steps_ - 1) + " (" + number_text(time_s_) + " s)";
}

Status Session::end_step_together() {
  Status missing;
  std::vector<Flow*> active;
  for (Flow& flow : flows_) {
    if (!flow.active()) continue;
    active.push_back(&flow);
    if (missing.ok()) missing = missing_of(flow);
  }
  if (active.empty()) return {};
  const std::string here = words_of_step();
  Status agreed = model_->agree_at(missing.ok() ? trouble_ : missing, place_in_time(), here);
  const bool complete = agreed.ok();
  if ((agreed.code() == WEIR_E_LOST && trouble_.code() != WEIR_E_LOST) ||
      agreed.code() == WEIR_E_ORDER) {
    return broken_ = {agreed.code(), here + " cannot be written: " + agreed.message() +
                                         "; nothing more is written, files that are not complete "
                                         "keep their finished steps under their temporary names"};
  }
  if (agreed.code() != WEIR_E_MISSING) trouble_ = {};
  for (Flow& flow : flows_) {
    for (Flow::Held& h : flow.held) h.released = true;
  }
  for (Flow* flow : active) {
    Status refused;
    if (!complete) {
      refused = model_->agree(missing_of(*flow));
    }
    const int group = flow->group(alive_);
    flow->held.push_back({flow->frame(), group, {}, nullptr, false, {}});
    push(*flow, flow->held.back());
    if (writer_ != nullptr) {
      writer_->on_pause([this] {
        if (Status s = poll(); !s.ok()) blame(s);
      });
      Status written = writer_->write(flow->frame(), refused);
      if (!written.ok() && written.code() != WEIR_E_MISSING) blame(written);
      if (Status remark = writer_->take_remark(); !remark.ok()) blame(remark);
    }
    flow->end();
    ++costs_.frames;
  }
  if (setup_.layout.slots == 1) WEIR_TRY(model_->barrier());
  return agreed;
}

}  // namespace weir::output
