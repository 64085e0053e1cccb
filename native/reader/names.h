// SPDX-License-Identifier: Apache-2.0
// File names: ids of each process, and the distinct texts behind them.
#pragma once

#include <array>
#include <string_view>

#include "reader/index.h"

namespace weir::reader {

struct Names {
  std::vector<weir_reader_name> ids;      // sorted by process, then id
  std::vector<weir_reader_text> texts;    // each text once
  std::vector<uint64_t> first_of;         // process p owns ids [first_of[p], first_of[p + 1])
  // The process whose ids p inherited when it was forked, or p itself.
  std::vector<uint32_t> parent_of;

  // Index of the text, or kLost: also of 0, which is no file's. A forked child's ids may be its
  // parent's.
  static constexpr uint32_t kLost = ~uint32_t{0};
  uint32_t text_of(uint32_t process, uint32_t id) const;

  // Nothing when the name is lost.
  const weir_reader_text* find(uint32_t process, uint32_t id) const {
    const uint32_t text = text_of(process, id);
    return text == kLost ? nullptr : &texts[text];
  }

  // Hands (id, index of its text) of each name that holds for a process to `take`: its own ids
  // first, then those it inherited. Where an id comes twice, the first one holds.
  template <class Take>
  void each(uint32_t process, Take take) const {
    for (;; process = parent_of[process]) {
      for (uint64_t i = first_of[process]; i < first_of[process + 1]; ++i)
        take(ids[i].id, ids[i].text);
      if (parent_of[process] == process) return;
    }
  }

  // The greatest ids of a process: of files, and of what is no file without their upper bit.
  std::array<uint32_t, 2> most_ids_of(uint32_t process) const;

  // Records of lost names and of no file count as those of files: hiding them could hide a
  // forecast's I/O.
  bool is_file(uint32_t process, uint32_t id) const {
    const auto* text = find(process, id);
    return text == nullptr || text->is_file != 0;
  }
};

Names read_names(const Mapping& file, const Index& index, Problems& problems);

}  // namespace weir::reader
