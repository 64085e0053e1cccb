// SPDX-License-Identifier: Apache-2.0
// The names of a run's files: no two are the same, whatever streams they are of, and none is that
// of a thing which output must not replace.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "output/engine/note.h"
#include "output/model/catalogue.h"
#include "output/transport/team.h"

namespace weir::output {

class Names {
 public:
  // [collective over the model] Streams are compared by the directories that they really write to;
  // what is there under names that are known before the first step is looked at, by the first rank
  // alone.
  // fails: WEIR_E_ARGUMENT, two streams write to one path; WEIR_E_FILE, see check_target.
  Status prepare(Team& model, const Catalogue& catalogue, const std::string& directory);

  // The frame is the first of a file. The same on all ranks, without a message. fails: WEIR_E_FILE,
  // this run has had a file of that name.
  Status claim(const Catalogue& catalogue, const Frame& frame);

 private:
  // By stream, absolute, without links as far as directories were there.
  std::vector<std::string> templates_;
  // Hashes of names: a long run has many; the stream that had them.
  std::unordered_map<uint64_t, int> used_;
};

}  // namespace weir::output
