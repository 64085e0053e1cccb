// SPDX-License-Identifier: Apache-2.0
#include "output/format/chunks/layout.h"

#include <algorithm>
#include <cstring>

namespace weir::output::chunks {
namespace {

constexpr int64_t kEnoughBytes = 256 << 10, kMostBytes = 4 << 20;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Counts up in dimensions [from, until), the last fastest; false at the end.
bool advance(std::vector<int64_t>& at, const std::vector<int64_t>& count, size_t from, size_t until) {
  for (size_t d = until; d-- > from;) {
    if (++at[d] < count[d]) return true;
    at[d] = 0;
  }
  return false;
}

// The number of parts, from `least` on, that makes them equal if there is one before twice as many: then owners may be cut at each part.
int64_t even_parts(int64_t length, int64_t least) {
  for (int64_t parts = least; parts <= 2 * least && parts <= length; parts++) {
    if (length % parts == 0) return parts;
  }
  return least;
}

}  // namespace

Layout::Layout(std::vector<int64_t> lengths, std::vector<int64_t> chunk) : lengths_(std::move(lengths)), chunk_(std::move(chunk)) {
  if (lengths_.empty()) lengths_ = chunk_ = {1};
  while (split_ + 1 < lengths_.size() && chunk_[split_] == 1) split_++;
  for (size_t d = 0; d < lengths_.size(); d++) {
    elements_ *= lengths_[d];
    chunk_elements_ *= chunk_[d];
    if (d < split_) outer_ *= lengths_[d];
    if (d > split_) {
      inner_ *= lengths_[d];
      chunks_per_band_ *= chunks_along(d);
    }
  }
  rows_ = chunk_[split_];
  bands_per_outer_ = chunks_along(split_);
}

int64_t Layout::granule() const {
  const int64_t outer_elements = lengths_[split_] * inner_;
  if (outer_ > 1 && lengths_[split_] % rows_ != 0) return outer_elements;  // bands begin anew with each outer index
  return band_elements();
}

int64_t Layout::band_of(int64_t element) const {
  const int64_t outer_elements = lengths_[split_] * inner_;
  return element / outer_elements * bands_per_outer_ + element % outer_elements / band_elements();
}

int64_t Layout::first_of(int64_t band) const {
  return band / bands_per_outer_ * lengths_[split_] * inner_ + band % bands_per_outer_ * band_elements();
}

int64_t Layout::count_of(int64_t band) const {
  const int64_t row = band % bands_per_outer_ * rows_;
  return std::min(rows_, lengths_[split_] - row) * inner_;
}

std::vector<int64_t> Layout::start_of(int64_t band, int64_t chunk) const {
  std::vector<int64_t> start(lengths_.size());
  int64_t outer = band / bands_per_outer_;
  for (size_t d = split_; d-- > 0;) {
    start[d] = outer % lengths_[d];
    outer /= lengths_[d];
  }
  start[split_] = band % bands_per_outer_ * rows_;
  for (size_t d = lengths_.size(); d-- > split_ + 1;) {
    start[d] = chunk % chunks_along(d) * chunk_[d];
    chunk /= chunks_along(d);
  }
  return start;
}

void Layout::cut(int64_t band, int64_t chunk, const char* from, size_t size, char* to) const {
  const std::vector<int64_t> start = start_of(band, chunk);
  const size_t last = lengths_.size() - 1;
  std::vector<int64_t> count(lengths_.size(), 1), at(lengths_.size(), 0);
  bool whole = true;
  for (size_t d = split_; d <= last; d++) {
    count[d] = std::min(chunk_[d], lengths_[d] - start[d]);
    if (count[d] != chunk_[d]) whole = false;
  }
  if (!whole) std::memset(to, 0, static_cast<size_t>(chunk_elements_) * size);
  if (contiguous()) {
    std::memcpy(to, from, static_cast<size_t>(count_of(band)) * size);
    return;
  }
  // Rows of the fastest dimension, one after the other; rows of the split dimension count from the band's begin.
  for (;;) {
    int64_t source = 0, target = 0;
    for (size_t d = split_; d <= last; d++) {
      source = source * lengths_[d] + (d == split_ ? at[d] : start[d] + at[d]);
      target = target * chunk_[d] + at[d];
    }
    std::memcpy(to + static_cast<size_t>(target) * size, from + static_cast<size_t>(source) * size, static_cast<size_t>(count[last]) * size);
    if (!advance(at, count, split_, last)) return;
  }
}

std::vector<int64_t> usual_chunk(const std::vector<int64_t>& lengths, int64_t element_bytes) {
  std::vector<int64_t> chunk(lengths.size(), 1);
  int64_t bytes = element_bytes;
  for (size_t d = lengths.size(); d-- > 0 && bytes < kEnoughBytes;) {
    const int64_t most = std::max<int64_t>(kMostBytes / bytes, 1);
    chunk[d] = divide_up(lengths[d], even_parts(lengths[d], divide_up(lengths[d], most)));
    bytes *= chunk[d];
  }
  return chunk;
}

}  // namespace weir::output::chunks
