// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/entropy.h"

#include <bit>
#include <cstring>
#include <limits>

#include "output/format/grib/clones.h"

namespace weir::output::grib {
namespace {

constexpr int64_t kSegment = 64;  // blocks among which a run of zero blocks ends
constexpr int kRestOfSegment = -1;

// Lanes of a vector; processors that have no such registers take several.
using Lanes = uint32_t __attribute__((vector_size(32)));
constexpr int64_t kWide = 8;

// A writer of bits that never branches on their number. It writes 8 bytes at a time, the later ones
// of which the next call overwrites.
struct Bits {
  char* at;
  uint64_t held;
  int used;  // below 8

  static constexpr int kMost = 56;  // in one call

  WEIR_INLINE void put(uint64_t value, int bits) {
    const int end = used + bits;
    // In two steps: there may be nothing to put, and nothing held.
    held |= value << 1 << (63 - end);
    uint64_t bytes = held;
    if constexpr (std::endian::native == std::endian::little) bytes = __builtin_bswap64(bytes);
    std::memcpy(at, &bytes, sizeof bytes);
    at += end >> 3;
    held <<= end & ~7;
    used = end & 7;
  }

  // A fundamental sequence: as many zeros, and a one.
  WEIR_INLINE void put_unary(uint64_t zeros) {
    for (; zeros >= kMost; zeros -= kMost) put(0, kMost);
    put(1, static_cast<int>(zeros) + 1);
  }
};

struct Block {
  const uint32_t* mapped;
  int64_t size;
  int64_t reference;  // 1: the first sample is stored as it is
  uint32_t first;     // that sample
  int bits, id_bits;

  int64_t coded() const { return size - reference; }
};

// What all samples have in common: 0 says that all are 0.
WEIR_INLINE uint32_t any_of(const uint32_t* mapped, int64_t size) {
  Lanes all = {};
  for (int64_t i = 0; i < size; i += kWide) {
    Lanes lanes;
    std::memcpy(&lanes, mapped + i, sizeof lanes);
    all |= lanes;
  }
  uint32_t any = 0;
  for (int64_t i = 0; i < kWide; i++) any |= all[i];
  return any;
}

// Sum of what is left of samples without their last `split` bits.
template <bool kLarge>
WEIR_INLINE uint64_t unary_zeros(const Block& block, int split) {
  if constexpr (kLarge) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < block.size; i++) sum += block.mapped[i] >> split;
    return sum;
  }
  Lanes sums = {};
  for (int64_t i = 0; i < block.size; i += kWide) {
    Lanes lanes;
    std::memcpy(&lanes, block.mapped + i, sizeof lanes);
    sums += lanes >> split;
  }
  uint32_t sum = 0;
  for (int64_t i = 0; i < kWide; i++) sum += sums[i];
  return sum;
}

// The number of last bits to store as they are with which a block is shortest, looked for from that
// of the block before; of equal ones the first that is met. *length: bits of the code, without its
// id and reference.
template <bool kLarge>
WEIR_INLINE int best_split(const Block& block, int before, uint64_t* length) {
  const auto coded = static_cast<uint64_t>(block.coded());
  const int most = (1 << block.id_bits) - 3;
  uint64_t zeros = unary_zeros<kLarge>(block, before);
  uint64_t least = zeros + coded * static_cast<uint64_t>(before + 1);
  int best = before;
  const auto shorter = [&](int split) {
    zeros = unary_zeros<kLarge>(block, split);
    const uint64_t now = zeros + coded * static_cast<uint64_t>(split + 1);
    if (now >= least) return false;
    least = now;
    best = split;
    return true;
  };
  // One bit more costs `coded` bits and saves half of the zeros at most.
  while (zeros >= coded && best < most && shorter(best + 1)) continue;
  if (best == before) {
    zeros = 0;
    while (zeros < coded && best > 0 && shorter(best - 1)) continue;
  }
  *length = least;
  return best;
}

// Length of a block in pairs (the "second extension"), with its id's last bit.
WEIR_INLINE uint64_t pairs_length(const Block& block) {
  uint32_t length = 1;
  for (int64_t i = 0; i < block.size; i += 2) {
    const uint32_t sum = block.mapped[i] + block.mapped[i + 1];
    length += sum * (sum + 1) / 2 + block.mapped[i + 1] + 1;
  }
  return length;
}

WEIR_INLINE void put_reference(const Block& block, Bits* to) {
  if (block.reference) to->put(block.first, block.bits);
}

WEIR_INLINE void put_pairs(const Block& block, Bits* to) {
  to->put(1, block.id_bits + 1);
  put_reference(block, to);
  for (int64_t i = 0; i < block.size; i += 2) {
    const uint32_t sum = block.mapped[i] + block.mapped[i + 1];
    to->put_unary(sum * (sum + 1) / 2 + block.mapped[i + 1]);
  }
}

// The last `bits` bits of samples [first, block.size).
WEIR_INLINE void put_last_bits(const Block& block, int64_t first, int bits, Bits* to) {
  const uint32_t* in = block.mapped;
  const uint32_t mask = (uint32_t{1} << bits) - 1;
  int64_t i = first;
  const auto number = [&](int64_t at) { return uint64_t{in[at] & mask}; };
  for (; i % 4 != 0 && i < block.size; i++) to->put(number(i), bits);
  if (bits <= Bits::kMost / 4) {
    for (; i < block.size; i += 4) {
      const uint64_t low = number(i + 2) << bits | number(i + 3);
      to->put((number(i) << bits | number(i + 1)) << 2 * bits | low, 4 * bits);
    }
  } else if (bits <= Bits::kMost / 2) {
    for (; i < block.size; i += 2) to->put(number(i) << bits | number(i + 1), 2 * bits);
  } else {
    for (; i < block.size; i++) to->put(number(i), bits);
  }
}

WEIR_INLINE void put_split(const Block& block, int split, Bits* to) {
  const uint32_t* in = block.mapped;
  to->put(static_cast<uint64_t>(split) + 1, block.id_bits);
  put_reference(block, to);
  int64_t i = block.reference;
  for (; i % 4 != 0; i++) to->put_unary(in[i] >> split);
  for (; i < block.size; i += 4) {
    const uint64_t a = in[i] >> split, b = in[i + 1] >> split, c = in[i + 2] >> split,
                   d = in[i + 3] >> split;
    if (a + b + c + d + 4 <= Bits::kMost) {
      const uint64_t front = uint64_t{2} << b | 1, back = uint64_t{2} << d | 1;
      to->put(front << (c + d + 2) | back, static_cast<int>(a + b + c + d + 4));
    } else {
      for (const uint64_t zeros : {a, b, c, d}) to->put_unary(zeros);
    }
  }
  if (split > 0) put_last_bits(block, block.reference, split, to);
}

WEIR_INLINE void put_plain(const Block& block, Bits* to) {
  to->put((uint64_t{1} << block.id_bits) - 1, block.id_bits);
  put_reference(block, to);
  put_last_bits(block, block.reference, block.bits, to);
}

// A sum of two samples from this on makes pairs longer than any block of plain samples.
constexpr uint32_t kNoPairs = 64;

template <bool kLarge>
WEIR_INLINE void put_block(const Block& block, uint32_t any, int* split, Bits* to) {
  const auto plain = static_cast<uint64_t>(block.coded() * block.bits);
  uint64_t length = 0;
  *split = best_split<kLarge>(block, *split, &length);
  uint64_t pairs = any < kNoPairs ? pairs_length(block) : std::numeric_limits<uint64_t>::max();
  if (pairs > plain) pairs = std::numeric_limits<uint64_t>::max();
  if (length < plain && length < pairs) put_split(block, *split, to);
  else if (length >= plain && plain <= pairs) put_plain(block, to);
  else put_pairs(block, to);
}

// A run of blocks that are all zero, in their order: "1 2 3 4" are 0 to 3 zeros, then the rest of a
// segment, then 5 and more.
WEIR_INLINE void put_zero_blocks(const Block& first, int64_t run, Bits* to) {
  to->put(0, first.id_bits + 1);
  put_reference(first, to);
  to->put_unary(static_cast<uint64_t>(run == kRestOfSegment ? 4 : run >= 5 ? run : run - 1));
}

template <bool kLarge>
WEIR_INLINE void put_interval(const EntropyLayout& layout, const uint32_t* mapped, uint32_t first,
                              int64_t blocks, int* split, Bits* to) {
  const int id_bits = layout.bits > 16 ? 5 : layout.bits > 8 ? 4 : 3;
  int64_t run = 0;
  Block begin = {};  // of the run
  for (int64_t b = 0; b < blocks; b++) {
    const Block block = {mapped + b * layout.block, layout.block, b == 0, first, layout.bits,
                         id_bits};
    const uint32_t any = any_of(block.mapped, block.size);
    if (any == 0) {
      if (run++ == 0) begin = block;
      if (b + 1 < blocks && (b + 1) % kSegment != 0) continue;
      put_zero_blocks(begin, run > 4 ? kRestOfSegment : run, to);
      run = 0;
      continue;
    }
    if (run > 0) put_zero_blocks(begin, run, to);
    run = 0;
    put_block<kLarge>(block, any, split, to);
  }
}

// The difference to the sample before as a number without a sign: small ones are small, and none
// needs more bits than a sample (section 4.2.2 of the standard).
WEIR_INLINE void map_all(const int32_t* in, int64_t count, int32_t most, int32_t* to) {
  to[0] = 0;
  for (int64_t i = 1; i < count; i++) {
    const int32_t before = in[i - 1], difference = in[i] - before;
    const int32_t room = before < most - before ? before : most - before;
    const int32_t size = difference < 0 ? -difference : difference;
    to[i] = size <= room ? 2 * size - (difference < 0) : room + size;
  }
}

// Sums of a block of 64 samples fit in 32 bits up to this many bits of a sample.
constexpr int kSmallBits = 25;

WEIR_CLONES void code_interval(const EntropyLayout& layout, const uint32_t* samples, int64_t blocks,
                               uint32_t* mapped, int* split, Bits* to) {
  const auto most = static_cast<int32_t>((uint32_t{1} << layout.bits) - 1);
  map_all(reinterpret_cast<const int32_t*>(samples), blocks * layout.block, most,
          reinterpret_cast<int32_t*>(mapped));
  Bits bits = *to;
  int now = *split;
  const uint32_t first = samples[0];
  if (layout.bits <= kSmallBits) put_interval<false>(layout, mapped, first, blocks, &now, &bits);
  else put_interval<true>(layout, mapped, first, blocks, &now, &bits);
  *split = now;
  *to = bits;
}

}  // namespace

bool has_code(const EntropyLayout& layout) {
  const int64_t n = layout.block;
  return layout.bits >= 1 && layout.bits <= kMostEntropyBits &&
         (n == 8 || n == 16 || n == 32 || n == 64) && layout.blocks >= 1 && layout.blocks <= 4096;
}

int64_t entropy_room(const EntropyLayout& layout, int64_t samples) {
  // No block is longer than its samples with the longest id.
  constexpr int64_t kLongestId = 6, kBeyond = 16;
  const int64_t blocks = (samples + layout.block - 1) / layout.block;
  return blocks * (layout.block * layout.bits + kLongestId) / 8 + kBeyond;
}

EntropyCoder::EntropyCoder(const EntropyLayout& layout, char* to)
    : layout_(layout), mapped_(static_cast<size_t>(layout.interval())), begin_(to), at_(to) {}

void EntropyCoder::add(uint32_t* samples, int64_t count) {
  const int64_t blocks = (count + layout_.block - 1) / layout_.block;
  for (int64_t i = count; i < blocks * layout_.block; i++) samples[i] = samples[count - 1];
  Bits bits{at_, held_, used_};
  code_interval(layout_, samples, blocks, mapped_.data(), &split_, &bits);
  at_ = bits.at;
  held_ = bits.held;
  used_ = bits.used;
}

int64_t EntropyCoder::finish() {
  return at_ - begin_ + (used_ > 0 ? 1 : 0);
}

}  // namespace weir::output::grib
