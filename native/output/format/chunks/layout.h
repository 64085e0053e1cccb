// SPDX-License-Identifier: Apache-2.0
// How a record of a variable is cut into chunks, and how the chunks lie in the order of its
// elements. Owners write ranges of that order, so chunks are gathered in bands: `rows` rows of one
// dimension with everything faster, which is the least that is both contiguous in the order and
// made of whole chunks. A chunk that has all of the faster dimensions is itself a band.
//
//     lengths 3 x 100 x 90, chunk 1 x 40 x 30:   a band is 40 rows of a level, 3 chunks; the third
//     band of a level has 20 rows
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::output::chunks {

// Without time. Chunks at the end of a dimension may stick out.
class Layout {
 public:
  // chunk: of the same size as lengths, between 1 and the length each.
  Layout(std::vector<int64_t> lengths, std::vector<int64_t> chunk);

  int64_t elements() const { return elements_; }        // of a record
  int64_t chunk_elements() const { return chunk_elements_; }
  int64_t bands() const { return outer_ * bands_per_outer_; }
  int64_t band_elements() const {
    return rows_ * inner_;
  }  // the last of an outer index may have fewer
  int64_t chunks_per_band() const { return chunks_per_band_; }
  // Chunks and bands are the same thing.
  bool contiguous() const { return chunks_per_band_ == 1; }
  // Any multiple of it (and the end) is a border between bands.
  int64_t granule() const;

  int64_t band_of(int64_t element) const;
  int64_t first_of(int64_t band) const;
  int64_t count_of(int64_t band) const;
  // Start of a band's chunk in each dimension.
  std::vector<int64_t> start_of(int64_t band, int64_t chunk) const;
  // Copies a chunk of a band, padded with zeros where it sticks out. `size`: bytes of an element.
  void cut(int64_t band, int64_t chunk, const char* from, size_t size, char* to) const;
  bool is_whole(int64_t band, int64_t chunk) const;
  // The other way: a chunk's elements into their band.
  void paste(int64_t band, int64_t chunk, const char* from, size_t size, char* to) const;
  const std::vector<int64_t>& chunk() const { return chunk_; }
  const std::vector<int64_t>& lengths() const { return lengths_; }
  // Number of chunks in a dimension.
  int64_t chunks_along(size_t dimension) const {
    return (lengths_[dimension] + chunk_[dimension] - 1) / chunk_[dimension];
  }

 private:
  // row(element in the band, element in the chunk, count) for each row that the chunk has within
  // the array.
  template <typename Row>
  void for_rows(int64_t band, int64_t chunk, Row row) const;

  std::vector<int64_t> lengths_, chunk_;
  size_t split_ = 0;  // the dimension that bands cut
  int64_t elements_ = 1, chunk_elements_ = 1, inner_ = 1, outer_ = 1, rows_ = 1,
          bands_per_outer_ = 1, chunks_per_band_ = 1;
};

// What a chunk is when nobody says it: whole rows, a level or a part of a level, of 256 KiB to 4
// MiB.
std::vector<int64_t> usual_chunk(const std::vector<int64_t>& lengths, int64_t element_bytes);

}  // namespace weir::output::chunks
