// SPDX-License-Identifier: Apache-2.0
// The items of an I/O list: libgfortran is called once for each scalar, array or string, and here
// their bytes are added up. An item of defined I/O (_gfortran_transfer_derived) brings statements
// of its own, which count what they move.
#include "hook/fortran/fortran.h"

using namespace weir::hook;

namespace {

// Array descriptor of libgfortran.so.5.
struct Dimension {
  ptrdiff_t stride, lower, upper;
};
struct Array {
  void* data;
  size_t offset;
  size_t element_bytes;
  int32_t version;
  int8_t rank, type;
  int16_t attribute;
  ptrdiff_t span;
  Dimension dimension[];
};
static_assert(sizeof(Array) == 40 && sizeof(Dimension) == 24);

constexpr int kMostDimensions = 15;
constexpr int8_t kCharacters = 6;

uint64_t bytes_of(const Array& array, int kind, size_t characters) {
  if (array.rank > kMostDimensions) return 0;
  uint64_t bytes =
      array.type == kCharacters ? characters * static_cast<uint64_t>(kind) : array.element_bytes;
  for (int i = 0; i < array.rank; ++i) {
    const Dimension& d = array.dimension[i];
    if (d.upper < d.lower) return 0;
    bytes *= static_cast<uint64_t>(d.upper - d.lower) + 1;
  }
  return bytes;
}

// Adds an item to the payload of the running statement, if it is the block's. The library's own
// calls from one of these functions to another pass the hooks, too: the outermost has the last
// word. No clock, no record.
template <typename Real>
inline void item(FortranBlock* block, uint64_t bytes, Real real) {
  FortranStatement* s = running(block);
  if (WEIR_UNLIKELY(s == nullptr)) return real();
  const uint64_t before = s->payload;
  real();
  s->payload = before + bytes;
}

// Bytes of a real of that kind: the one of 10 bytes takes 16, in memory and in files.
uint64_t real_bytes(int kind) { return kind == 10 ? 16 : static_cast<uint64_t>(kind); }

}  // namespace

#define WEIR_IN(symbol, ...) [&] { WEIR_BOUND_REAL(symbol)(__VA_ARGS__); }
#define WEIR_SCALAR(symbol, bytes)                                              \
  WEIR_OPTIONAL_HOOK(void, symbol, FortranBlock* block, void* data, int kind) { \
    WEIR_BOUND(symbol);                                                         \
    item(block, bytes, WEIR_IN(symbol, block, data, kind));                     \
  }
#define WEIR_BOTH_WAYS(hook, symbol, ...) \
  hook(symbol, __VA_ARGS__) hook(symbol##_write, __VA_ARGS__)
WEIR_BOTH_WAYS(WEIR_SCALAR, _gfortran_transfer_integer, static_cast<uint64_t>(kind))
WEIR_BOTH_WAYS(WEIR_SCALAR, _gfortran_transfer_logical, static_cast<uint64_t>(kind))
WEIR_BOTH_WAYS(WEIR_SCALAR, _gfortran_transfer_real, real_bytes(kind))
WEIR_BOTH_WAYS(WEIR_SCALAR, _gfortran_transfer_complex, 2 * real_bytes(kind))
WEIR_BOTH_WAYS(WEIR_SCALAR, _gfortran_transfer_real128, static_cast<uint64_t>(kind))
WEIR_BOTH_WAYS(WEIR_SCALAR, _gfortran_transfer_complex128, 2 * static_cast<uint64_t>(kind))

#define WEIR_CHARACTER(symbol, unused)                                             \
  WEIR_OPTIONAL_HOOK(void, symbol, FortranBlock* block, void* data, size_t size) { \
    WEIR_BOUND(symbol);                                                            \
    item(block, size, WEIR_IN(symbol, block, data, size));                         \
  }
WEIR_BOTH_WAYS(WEIR_CHARACTER, _gfortran_transfer_character, )

#define WEIR_WIDE(symbol, unused)                                                              \
  WEIR_OPTIONAL_HOOK(void, symbol, FortranBlock* block, void* data, size_t size, int kind) {   \
    WEIR_BOUND(symbol);                                                                        \
    item(block, size * static_cast<uint64_t>(kind), WEIR_IN(symbol, block, data, size, kind)); \
  }
WEIR_BOTH_WAYS(WEIR_WIDE, _gfortran_transfer_character_wide, )

#define WEIR_ARRAY(symbol, unused)                                              \
  WEIR_OPTIONAL_HOOK(void, symbol, FortranBlock* block, Array* array, int kind, \
                     size_t characters) {                                       \
    WEIR_BOUND(symbol);                                                         \
    item(block, bytes_of(*array, kind, characters),                             \
         WEIR_IN(symbol, block, array, kind, characters));                      \
  }
WEIR_BOTH_WAYS(WEIR_ARRAY, _gfortran_transfer_array, )
