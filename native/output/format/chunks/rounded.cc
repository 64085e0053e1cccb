// SPDX-License-Identifier: Apache-2.0
#include "output/format/chunks/rounded.h"

#include "output/reduce/rounding.h"

namespace weir::output::chunks {

Rounded::Rounded(const std::vector<Variable>& variables) : savings_(variables.size()) {
  for (const Variable& v : variables) options_.push_back({v.rounding, v.type, v.fill});
}

const char* Rounded::round(size_t variable, const Layout& layout, int64_t band, const char* data) {
  const Options& options = options_[variable];
  bits_ = 0;
  if (!options.rounding.any()) return data;
  const int64_t count = layout.count_of(band);
  const int64_t row = layout.lengths().empty() ? 1 : layout.lengths().back();
  band_.resize(static_cast<size_t>(count) * size_of(options.type));
  bits_ = round_values(options.rounding, options.type, options.missing, data, count, row,
                       band_.data());
  return band_.data();
}

void Rounded::add(size_t variable, size_t chunk_bytes, size_t file_bytes) {
  savings_[variable].add(static_cast<int64_t>(chunk_bytes), static_cast<int64_t>(file_bytes),
                         bits_);
}

}  // namespace weir::output::chunks
