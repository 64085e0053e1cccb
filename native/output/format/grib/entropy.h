// SPDX-License-Identifier: Apache-2.0
// Adaptive entropy coding (CCSDS 121.0-B-3, lossless data compression), as data representation
// template 5.42 of GRIB2 uses it: unsigned samples, each predicted to be the one before. The
// choices that the standard leaves open are those of libaec, so that the bytes are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::output::grib {

struct EntropyLayout {
  int bits = 0;         // of a sample, 1 to kMostEntropyBits
  int64_t block = 0;    // samples that are coded alike: 8, 16, 32 or 64
  int64_t blocks = 0;   // between two samples that are stored as they are: 1 to 4096

  int64_t interval() const { return block * blocks; }
};

constexpr int kMostEntropyBits = 31;

// Whether EntropyCoder has code for it.
bool has_code(const EntropyLayout& layout);
// Bytes that the code of so many samples needs at most, with what EntropyCoder writes beyond it.
int64_t entropy_room(const EntropyLayout& layout, int64_t samples);

class EntropyCoder {
 public:
  // `to` has entropy_room() bytes; layout has code.
  EntropyCoder(const EntropyLayout& layout, char* to);
  // The next samples, each below 2^bits: interval() of them, or fewer in the last call. There is
  // room for interval() behind `samples`, which is overwritten.
  void add(uint32_t* samples, int64_t count);
  // Bytes of the code. Nothing may be added after it.
  int64_t finish();

 private:
  EntropyLayout layout_;
  std::vector<uint32_t> mapped_;
  char* begin_;
  char* at_;
  uint64_t held_ = 0;  // bits that are not in a whole byte yet, from the most significant
  int used_ = 0;       // number of them
  int split_ = 0;      // bits that the last block stored as they are: the next begins to try there
};

}  // namespace weir::output::grib
