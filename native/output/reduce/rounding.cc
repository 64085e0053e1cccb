// SPDX-License-Identifier: Apache-2.0
#include "output/reduce/rounding.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "output/reduce/information.h"

namespace weir::output {
namespace {

template <typename T>
struct Float;
template <>
struct Float<float> {
  using Word = uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr Word kInfinity = 0x7f800000;
};
template <>
struct Float<double> {
  using Word = uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr Word kInfinity = 0x7ff0000000000000;
};

// A missing value that is none: no word of a value is it, since NaN stays whatever it is.
template <typename T>
typename Float<T>::Word missing_word(const std::optional<Number>& missing) {
  using F = Float<T>;
  return missing ? std::bit_cast<typename F::Word>(static_cast<T>(missing->real))
                 : F::kInfinity | 1;
}

template <typename T>
void round_all(int bits, const std::optional<Number>& missing, const char* from, int64_t count,
               char* to) {
  using F = Float<T>;
  using Word = typename F::Word;
  const int drop = F::kMantissa - bits;
  const Word none = missing_word<T>(missing), half = (Word{1} << (drop - 1)) - 1,
             keep = ~((Word{1} << drop) - 1);
  for (int64_t i = 0; i < count; i++) {
    Word word;
    std::memcpy(&word, from + i * static_cast<int64_t>(sizeof word), sizeof word);
    const Word near = (word + half + (word >> drop & 1)) & keep, cut = word & keep;
    const bool finite = (word & F::kInfinity) != F::kInfinity;
    const bool usable = (near & F::kInfinity) != F::kInfinity && near != none;
    Word rounded = usable ? near : cut;
    rounded = finite && word != none && rounded != none ? rounded : word;
    std::memcpy(to + i * static_cast<int64_t>(sizeof word), &rounded, sizeof rounded);
  }
}

// Pairs with a value that is none do not count.
template <typename T>
void add_run(const typename Float<T>::Word* words, int64_t count, typename Float<T>::Word none,
             BitInformation* to) {
  using F = Float<T>;
  int64_t begin = 0;
  for (int64_t i = 0; i < count; i++) {
    if ((words[i] & F::kInfinity) != F::kInfinity && words[i] != none) continue;
    if (i - begin > 1) to->add(words + begin, i - begin);
    begin = i + 1;
  }
  if (count - begin > 1) to->add(words + begin, count - begin);
}

template <typename T>
int informative_bits(double share, const std::optional<Number>& missing, const char* from,
                     int64_t count, int64_t row) {
  using F = Float<T>;
  using Word = typename F::Word;
  const Word none = missing_word<T>(missing);
  constexpr int kAll = static_cast<int>(sizeof(Word)) * 8;
  BitInformation information(kAll);
  std::vector<Word> words;
  each_run(count, row, [&](int64_t first, int64_t n) {
    words.resize(static_cast<size_t>(n));
    std::memcpy(words.data(), from + first * static_cast<int64_t>(sizeof(Word)),
                words.size() * sizeof(Word));
    add_run<T>(words.data(), n, none, &information);
  });
  const int leading = bits_to_keep(information.information(), share);
  constexpr int kBefore = kAll - F::kMantissa;  // sign and exponent
  return leading == 0 ? F::kMantissa : std::max(1, leading - kBefore);
}

template <typename T>
int round_with(const Rounding& rounding, const std::optional<Number>& missing, const char* from,
               int64_t count, int64_t row, char* to) {
  const int bits =
      rounding.bits > 0
          ? std::min(rounding.bits, Float<T>::kMantissa)
          : informative_bits<T>(rounding.information, missing, from, count, row);
  round_to_bits(bits, sizeof(T) == 4 ? WEIR_FLOAT32 : WEIR_FLOAT64, missing, from, count, to);
  return bits;
}

}  // namespace

void round_to_bits(int bits, Type type, const std::optional<Number>& missing, const void* from,
                   int64_t count, void* to) {
  const char* in = static_cast<const char*>(from);
  char* out = static_cast<char*>(to);
  if (bits >= mantissa_bits(type)) {
    if (in != out) std::memcpy(out, in, static_cast<size_t>(count) * size_of(type));
  } else if (type == WEIR_FLOAT32) {
    round_all<float>(bits, missing, in, count, out);
  } else {
    round_all<double>(bits, missing, in, count, out);
  }
}

int round_values(const Rounding& rounding, Type type, const std::optional<Number>& missing,
                 const void* from, int64_t count, int64_t row, void* to) {
  const char* in = static_cast<const char*>(from);
  char* out = static_cast<char*>(to);
  if (type == WEIR_FLOAT32) return round_with<float>(rounding, missing, in, count, row, out);
  return round_with<double>(rounding, missing, in, count, row, out);
}

}  // namespace weir::output
