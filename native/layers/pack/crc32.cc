// SPDX-License-Identifier: Apache-2.0
#include "layers/pack/crc32.h"

#include <string.h>

#include <array>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace weir::layers::pack {
namespace {

// Eight tables: the effect of a byte that lies 0 to 7 bytes before the end of a word.
constexpr int kTables = 8;
using Tables = std::array<std::array<uint32_t, 256>, kTables>;

constexpr Tables make_tables() {
  Tables t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    t[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (size_t k = 1; k < kTables; ++k) t[k][i] = t[0][t[k - 1][i] & 255] ^ (t[k - 1][i] >> 8);
  }
  return t;
}

constexpr Tables kT = make_tables();

uint32_t by_tables(uint32_t c, const unsigned char* p, size_t n) {
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    memcpy(&word, p, 8);  // little-endian, as all platforms that weir knows
    word ^= c;
    c = kT[7][word & 255] ^ kT[6][word >> 8 & 255] ^ kT[5][word >> 16 & 255] ^
        kT[4][word >> 24 & 255] ^ kT[3][word >> 32 & 255] ^ kT[2][word >> 40 & 255] ^
        kT[1][word >> 48 & 255] ^ kT[0][word >> 56];
  }
  for (; n > 0; --n, ++p) c = kT[0][(c ^ *p) & 255] ^ (c >> 8);
  return c;
}

#if defined(__x86_64__)

#define WEIR_FOLDS __attribute__((target("pclmul,sse4.1")))
#define WEIR_FOLDS_INLINE WEIR_FOLDS __attribute__((always_inline)) inline

// 16 bytes moved on by as many bits as the constants stand for, and what lies there added.
WEIR_FOLDS_INLINE __m128i fold(__m128i bits, __m128i constants, __m128i there) {
  const __m128i low = _mm_clmulepi64_si128(bits, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(bits, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), there);
}

WEIR_FOLDS_INLINE __m128i load(const unsigned char* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// Gopal and others, Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction
// (Intel, 2009), with its constants for this polynomial. n: a multiple of 16, at least 64.
WEIR_FOLDS uint32_t by_folding(uint32_t c, const unsigned char* p, size_t n) {
  const __m128i by64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
  const __m128i by16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  // Four lanes by name: as an array they would lie in memory.
  __m128i a = _mm_xor_si128(load(p), _mm_cvtsi32_si128(static_cast<int>(c)));
  __m128i b = load(p + 16), d = load(p + 32), e = load(p + 48);
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
    a = fold(a, by64, load(p));
    b = fold(b, by64, load(p + 16));
    d = fold(d, by64, load(p + 32));
    e = fold(e, by64, load(p + 48));
  }
  __m128i sum = fold(fold(fold(a, by16, b), by16, d), by16, e);
  for (; n >= 16; p += 16, n -= 16) sum = fold(sum, by16, load(p));
  // 128 bits to 64, to 32 (Barrett).
  const __m128i low32 = _mm_setr_epi32(~0, 0, ~0, 0);
  const __m128i first = _mm_clmulepi64_si128(sum, by16, 0x10);
  sum = _mm_xor_si128(_mm_srli_si128(sum, 8), first);
  const __m128i rest = _mm_srli_si128(sum, 4);
  sum = _mm_clmulepi64_si128(_mm_and_si128(sum, low32), _mm_set_epi64x(0, 0x0163cd6124), 0x00);
  sum = _mm_xor_si128(sum, rest);
  const __m128i polynomial = _mm_set_epi64x(0x01f7011641, 0x01db710641);
  __m128i q = _mm_clmulepi64_si128(_mm_and_si128(sum, low32), polynomial, 0x10);
  q = _mm_clmulepi64_si128(_mm_and_si128(q, low32), polynomial, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(sum, q), 1));
}

bool has_folding() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBoth = 1u << 1 | 1u << 19;  // PCLMULQDQ, SSE4.1
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & kBoth) == kBoth;
}

size_t fold_whole(uint32_t* c, const unsigned char* p, size_t n) {
  static constinit int folds = -1;
  if (n < 64) return 0;
  if (__atomic_load_n(&folds, __ATOMIC_RELAXED) < 0)
    __atomic_store_n(&folds, has_folding() ? 1 : 0, __ATOMIC_RELAXED);
  if (folds == 0) return 0;
  n &= ~size_t{15};
  *c = by_folding(*c, p, n);
  return n;
}

#else

size_t fold_whole(uint32_t*, const unsigned char*, size_t) { return 0; }

#endif

}  // namespace

uint32_t crc32(uint32_t crc, const void* data, size_t n) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint32_t c = ~crc;
  const size_t folded = fold_whole(&c, p, n);
  return ~by_tables(c, p + folded, n - folded);
}

}  // namespace weir::layers::pack
