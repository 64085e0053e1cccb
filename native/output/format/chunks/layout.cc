// SPDX-License-Identifier: Apache-2.0
#include "output/format/chunks/layout.h"

#include <algorithm>
#include <cstring>

namespace weir::output::chunks {
namespace {

constexpr int64_t kEnoughBytes = 256 << 10, kMostBytes = 4 << 20;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Counts up in dimensions [from, until), the last fastest; false at the end.
bool advance(std::vector<int64_t>& at, const std::vector<int64_t>& count, size_t from,
             size_t until) {
  for (size_t d = until; d-- > from;) {
    if (++at[d] < count[d]) return true;
    at[d] = 0;
  }
  return false;
}

// The number of parts, from `least` on, that makes them equal if there is one before twice as many:
// then owners may be cut at each part.
int64_t even_parts(int64_t length, int64_t least) {
  for (int64_t parts = least; parts <= 2 * least && parts <= length; parts++) {
    if (length % parts == 0) return parts;
  }
  return least;
}

}  // namespace

Layout::Layout(std::vector<int64_t> lengths, std::vector<int64_t> chunk)
    : lengths_(std::move(lengths)), chunk_(std::move(chunk)) {
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
  if (outer_ > 1 && lengths_[split_] % rows_ != 0)
    return outer_elements;  // bands begin anew with each outer index
  return band_elements();
}

int64_t Layout::band_of(int64_t element) const {
  const int64_t outer_elements = lengths_[split_] * inner_;
  return element / outer_elements * bands_per_outer_ + element % outer_elements / band_elements();
}

int64_t Layout::first_of(int64_t band) const {
  return band / bands_per_outer_ * lengths_[split_] * inner_ +
         band % bands_per_outer_ * band_elements();
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

// Rows of the fastest dimension, one after the other; rows of the split dimension count from the
// band's begin.
template <typename Row>
void Layout::for_rows(int64_t band, int64_t chunk, Row row) const {
  if (contiguous()) return row(0, 0, count_of(band));
  const std::vector<int64_t> start = start_of(band, chunk);
  const size_t last = lengths_.size() - 1;
  std::vector<int64_t> count(lengths_.size(), 1), at(lengths_.size(), 0);
  for (size_t d = split_; d <= last; d++) count[d] = std::min(chunk_[d], lengths_[d] - start[d]);
  do {
    int64_t in_band = 0, in_chunk = 0;
    for (size_t d = split_; d <= last; d++) {
      in_band = in_band * lengths_[d] + (d == split_ ? at[d] : start[d] + at[d]);
      in_chunk = in_chunk * chunk_[d] + at[d];
    }
    row(in_band, in_chunk, count[last]);
  } while (advance(at, count, split_, last));
}

bool Layout::is_whole(int64_t band, int64_t chunk) const {
  const std::vector<int64_t> start = start_of(band, chunk);
  for (size_t d = 0; d < start.size(); d++) {
    if (start[d] + chunk_[d] > lengths_[d]) return false;
  }
  return true;
}

void Layout::cut(int64_t band, int64_t chunk, const char* from, size_t size, char* to) const {
  const auto copy = [&](int64_t in_band, int64_t in_chunk, int64_t count) {
    std::memcpy(to + static_cast<size_t>(in_chunk) * size,
                from + static_cast<size_t>(in_band) * size, static_cast<size_t>(count) * size);
  };
  if (!is_whole(band, chunk)) std::memset(to, 0, static_cast<size_t>(chunk_elements_) * size);
  for_rows(band, chunk, copy);
}

void Layout::paste(int64_t band, int64_t chunk, const char* from, size_t size, char* to) const {
  for_rows(band, chunk, [&](int64_t in_band, int64_t in_chunk, int64_t count) {
    std::memcpy(to + static_cast<size_t>(in_band) * size,
                from + static_cast<size_t>(in_chunk) * size, static_cast<size_t>(count) * size);
  });
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
