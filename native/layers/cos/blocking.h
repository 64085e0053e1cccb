// SPDX-License-Identifier: Apache-2.0
// COS blocking: where bytes and control words lie (README.md here; the layout is that of Cray's COS
// and UNICOS as NCAR's cbfunblk reads it). Words have 8 bytes, big-endian; blocks 512 words, the
// first of which is the block control word.
#pragma once

#include <stdint.h>
#include <string.h>

namespace weir::layers::cos {

inline constexpr uint64_t kWord = 8;
inline constexpr uint64_t kBlockWords = 512;
inline constexpr uint64_t kBlock = kBlockWords * kWord;
inline constexpr uint64_t kData = kBlock - kWord;  // bytes of data in a full block
// That the end of the file can touch: data, and control words that no longer fit.
inline constexpr uint64_t kTailBlocks = 3;

enum Mode : uint64_t { kBlockControl = 0, kEndOfRecord = 8, kEndOfFile = 14, kEndOfData = 15 };

inline uint64_t block_control(uint64_t number, uint64_t words_to_next) {
  return (number & 0xffffff) << 9 | (words_to_next & 0x1ff);
}
// back_*: blocks back to the one in which the file (record) began.
inline uint64_t record_control(Mode mode, uint64_t unused_bits, uint64_t back_file,
                               uint64_t back_record) {
  return uint64_t{mode} << 60 | (unused_bits & 0x3f) << 54 | (back_file & 0xfffff) << 24 |
         (back_record & 0x7fff) << 9;
}

inline uint64_t mode_of(uint64_t control) { return control >> 60; }
inline uint64_t unused_bits_of(uint64_t control) { return control >> 54 & 0x3f; }
inline uint64_t back_record_of(uint64_t control) { return control >> 9 & 0x7fff; }
inline uint64_t number_of(uint64_t control) { return control >> 9 & 0xffffff; }
inline uint64_t words_to_next(uint64_t control) { return control & 0x1ff; }

inline uint64_t load_word(const uint8_t* at) {
  uint64_t word;
  memcpy(&word, at, sizeof word);
  return __builtin_bswap64(word);
}
inline void store_word(uint8_t* at, uint64_t word) {
  word = __builtin_bswap64(word);
  memcpy(at, &word, sizeof word);
}

// Of a file that is one record.
inline uint64_t physical(uint64_t byte) { return byte / kData * kBlock + kWord + byte % kData; }

// The end of a file of one record of `bytes` bytes: everything from the last word of data on.
struct Tail {
  uint8_t image[kTailBlocks * kBlock];
  uint64_t first_block;  // that image[0] is in
  uint64_t from;         // in the image: the first control word behind the data
  uint64_t bytes;        // of the image, whole blocks

  explicit Tail(uint64_t size);
  // The control word of first_block, which says how much data follows it.
  uint64_t first_control() const { return load_word(image); }
  uint64_t file_bytes() const { return first_block * kBlock + bytes; }
};

// Reads the end of a file as far as it is in `image`, whose first block has this number. The
// record's bytes; -1: no such end, or the file has more than one record.
int64_t record_bytes(const uint8_t* image, uint64_t blocks, uint64_t first_block);

}  // namespace weir::layers::cos
