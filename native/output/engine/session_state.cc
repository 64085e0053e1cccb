// SPDX-License-Identifier: Apache-2.0
// What a run that continues another has of it, and what it leaves to the next: where streams stand
// that have means, sums and extremes.
#include "output/engine/saved_state.h"
#include "output/engine/session.h"
#include "output/engine/writer.h"
#include "output/model/text.h"

namespace weir::output {

// [collective over the model] The first rank reads, all have the same.
Status Session::resume() {
  for (size_t s = 0; s < flows_.size(); ++s) {
    const Stream& stream = setup_.catalogue.streams[s];
    if (!keeps_state(stream)) continue;
    const std::string path = state_path(setup_.settings.directory, stream);
    Status mine;
    std::vector<char> bytes;
    if (model_->rank() == 0) {
      Result<std::optional<std::string>> header = read_state_header(path);
      mine = header.status();
      if (header.ok() && header->has_value()) bytes.assign((*header)->begin(), (*header)->end());
    }
    WEIR_TRY(model_->agree(mine));
    WEIR_TRY(model_->broadcast(bytes, 0));
    if (bytes.empty()) continue;
    Result<Standing> standing = SavedState(setup_.catalogue, stream, setup_.layout.streams[s])
                                    .parse({bytes.begin(), bytes.end()});
    if (!standing.ok()) {
      return {standing.status().code(), "stream " + quoted(stream.name) +
                                            ": cannot go on with the saved state " + path + ": " +
                                            standing.status().message() +
                                            "; define the stream as the run before did, or take "
                                            "its files and the state away to begin anew"};
    }
    flows_[s].resume(*standing);
  }
  return {};
}

// [collective over the model] At the end. What cannot be saved is reported as what cannot be
// written.
void Session::save_states() {
  for (Flow& flow : flows_) {
    const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(flow.frame().stream)];
    if (steps_ == 0 || !keeps_state(stream)) continue;
    flow.begin_saving();
    if (setup_.topology.has_servers()) {
      if (!alive_.empty()) hand_over(flow);
    } else if (writer_ != nullptr) {
      if (Status s = writer_->write(flow.frame(), {}); !s.ok()) blame(s);
    }
  }
}

}  // namespace weir::output
