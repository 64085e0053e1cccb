// SPDX-License-Identifier: Apache-2.0
// Rounding of the bands of a file's variables before their chunks are compressed, and what both
// saved. A band is rounded by its own values alone: the file is the same whoever writes it.
#pragma once

#include <vector>

#include "output/format/chunks/layout.h"
#include "output/format/format.h"

namespace weir::output::chunks {

class Rounded {
 public:
  explicit Rounded(const std::vector<Variable>& variables);

  // The band to be stored, until the next call: `data` itself where nothing is rounded.
  const char* round(size_t variable, const Layout& layout, int64_t band, const char* data);
  // A compressed chunk of the band that was rounded last.
  void add(size_t variable, size_t chunk_bytes, size_t file_bytes);
  const std::vector<Saving>& savings() const { return savings_; }

 private:
  struct Options {
    Rounding rounding;
    Type type;
    std::optional<Number> missing;
  };
  std::vector<Options> options_;  // by variable
  std::vector<Saving> savings_;
  std::vector<char> band_;
  int bits_ = 0;
};

}  // namespace weir::output::chunks
