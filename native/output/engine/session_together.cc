// SPDX-License-Identifier: Apache-2.0
// The modes without servers: at the end of a step all ranks agree that the frames are complete, then those that write do so; the others go
// on. The next agreement says that this frame's slots are free, and what became of it.
#include "output/engine/session.h"
#include "output/engine/writer.h"
#include "output/transport/patience.h"

namespace weir::output {

Status Session::end_step_together() {
  Status lack;
  std::vector<Flow*> active;
  for (Flow& flow : flows_) {
    if (!flow.active()) continue;
    active.push_back(&flow);
    if (const int column = flow.lacking(); column >= 0 && lack.ok()) lack = lack_in_words(flow, column);
  }
  if (active.empty()) return {};
  Status agreed = model_->agree(lack.ok() ? trouble_ : lack);
  const bool complete = agreed.ok();
  if (agreed.code() == WEIR_E_LOST && trouble_.code() != WEIR_E_LOST) return broken_ = agreed;
  if (agreed.code() != WEIR_E_MISSING) trouble_ = {};
  for (Flow& flow : flows_) {
    for (Flow::Held& h : flow.held) h.released = true;
  }
  for (Flow* flow : active) {
    Status refused;
    if (!complete) {
      const int column = flow->lacking();
      refused = model_->agree(column >= 0 ? lack_in_words(*flow, column) : Status());
    }
    flow->held.push_back({flow->frame(), 0, {}, nullptr, false});
    push(flow->held.back());
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
