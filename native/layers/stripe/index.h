// SPDX-License-Identifier: Apache-2.0
// The file that stands under the name of a striped one, and says where its pieces are (README.md
// here).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

namespace weir::layers::stripe {

inline constexpr uint32_t kMostPieces = 16;
inline constexpr size_t kIndexBytes = 16384;

// unit bytes in piece 0, the next unit bytes in piece 1, and so on in turn.
struct Index {
  uint64_t unit;
  uint32_t pieces;
  base::Text path[kMostPieces];  // into a buffer of the caller's
};

// Whether an index may begin with the text and go on: it ends with a line.
bool is_cut(base::Text text);
// False when the text is no index.
bool parse(base::Text text, Index* to);
// For a new file: a piece in each of the comma-separated directories, named after the file and a
// hash of its whole name and of what tells files apart that have one name in turn. False: too many,
// or it does not fit. The paths point into the text.
bool compose(base::Text directories, uint64_t unit, base::Text path, uint64_t identity, char* text,
             size_t size, Index* to);

// Where a byte lies, and how many from there on lie in the same piece one after another.
struct Place {
  uint32_t piece;
  uint64_t offset, run;
};
inline Place place_of(uint64_t byte, uint64_t unit, uint32_t pieces) {
  const uint64_t stripe = byte / unit;
  return {static_cast<uint32_t>(stripe % pieces), stripe / pieces * unit + byte % unit,
          unit - byte % unit};
}
// Bytes of piece i of a file of so many bytes, and the least file that has so many bytes in piece
// i.
uint64_t piece_bytes(uint64_t file_bytes, uint64_t unit, uint32_t pieces, uint32_t i);
uint64_t file_bytes(uint64_t piece_bytes, uint64_t unit, uint32_t pieces, uint32_t i);

}  // namespace weir::layers::stripe
