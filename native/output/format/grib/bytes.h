// SPDX-License-Identifier: Apache-2.0
// Numbers in messages of GRIB: most significant byte first, negative ones by sign and magnitude
// (WMO Manual on Codes, FM 92, regulation 92.1.5), and where the sections of a message are.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace weir::output::grib {

// Memory that resize() does not fill: all of it is written once.
template <typename T>
struct Unfilled : std::allocator<T> {
  template <typename U>
  struct rebind {
    using other = Unfilled<U>;
  };
  template <typename U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <typename U, typename... Values>
  void construct(U* at, Values&&... values) {
    std::allocator_traits<std::allocator<T>>::construct(*this, at, std::forward<Values>(values)...);
  }
};
using Bytes = std::vector<char, Unfilled<char>>;

inline uint64_t take_number(const char* at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) value = value << 8 | static_cast<unsigned char>(at[i]);
  return value;
}

inline void put_number(char* at, int bytes, uint64_t value) {
  for (int i = bytes - 1; i >= 0; i--, value >>= 8) at[i] = static_cast<char>(value & 0xff);
}

inline int64_t take_signed(const char* at, int bytes) {
  const uint64_t raw = take_number(at, bytes), sign = uint64_t{1} << (8 * bytes - 1);
  const auto magnitude = static_cast<int64_t>(raw & (sign - 1));
  return raw & sign ? -magnitude : magnitude;
}

inline void put_signed(char* at, int bytes, int64_t value) {
  const uint64_t sign = uint64_t{1} << (8 * bytes - 1);
  put_number(at, bytes, value < 0 ? static_cast<uint64_t>(-value) | sign
                                  : static_cast<uint64_t>(value));
}

// Offsets of sections 1 to 7 in a message of edition 2; 0: it has none.
struct Sections {
  std::array<int64_t, 8> at = {};
  int64_t length = 0;  // of the message
};

constexpr int64_t kIndicatorBytes = 16;
// What is read of each section of edition 2 whatever its template is.
constexpr int64_t kLeastBytes[] = {0, 21, 5, 14, 9, 11, 6, 5};

// `bytes`: of the message's beginning, which may be all of it. Null: not one of edition 2, or the
// bytes end before section 5 does, or its sections do not follow each other as they must.
inline std::optional<Sections> sections_of(const char* message, int64_t bytes) {
  if (bytes < kIndicatorBytes || std::memcmp(message, "GRIB", 4) != 0 || message[7] != 2)
    return std::nullopt;
  Sections s;
  s.length = static_cast<int64_t>(take_number(message + 8, 8));
  for (int64_t at = kIndicatorBytes; at + 5 <= bytes;) {
    if (std::memcmp(message + at, "7777", 4) == 0) break;
    const auto length = static_cast<int64_t>(take_number(message + at, 4));
    const int number = static_cast<unsigned char>(message[at + 4]);
    if (number < 1 || number > 7 || length < kLeastBytes[number] || at > s.length - length)
      return std::nullopt;
    // A second field in the message: not read, not written.
    if (s.at[static_cast<size_t>(number)] != 0) return std::nullopt;
    s.at[static_cast<size_t>(number)] = at;
    if (number == 5 && at + length > bytes) return std::nullopt;
    at += length;
  }
  const bool in_order = s.at[1] > 0 && s.at[1] < s.at[3] && s.at[2] < s.at[3] &&
                        s.at[3] < s.at[4] && s.at[4] < s.at[5];
  return in_order ? std::optional<Sections>(s) : std::nullopt;
}

}  // namespace weir::output::grib
