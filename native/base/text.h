// SPDX-License-Identifier: Apache-2.0
// Text without allocation: bounded copies, numbers, a hash. Nothing here sets errno.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Threads: any, and signal handlers, as long as each has its own Writer. No system call.
namespace weir::base {

// Bytes with a length; need not end with a zero.
// The bytes belong to somebody else, who outlives the Text.
struct Text {
  const char* data = nullptr;
  size_t size = 0;
};

inline Text text(const char* s) { return {s, s ? strlen(s) : 0}; }

// Builds a zero-terminated text in a caller's buffer; what does not fit is cut off and remembered.
class Writer {
 public:
  Writer(char* buffer, size_t size) : at_(buffer), begin_(buffer), end_(buffer + size - 1) {
    *at_ = 0;
  }

  Writer& add(Text t) {
    size_t n = t.size;
    if (n > static_cast<size_t>(end_ - at_)) {
      n = static_cast<size_t>(end_ - at_);
      cut_ = true;
    }
    if (n != 0) memcpy(at_, t.data, n);
    at_ += n;
    *at_ = 0;
    return *this;
  }
  Writer& add(const char* s) { return add(text(s)); }
  Writer& add_number(uint64_t value) {
    char digits[20];
    size_t n = 0;
    do digits[sizeof digits - ++n] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    return add(Text{digits + sizeof digits - n, n});
  }

  Text view() const { return {begin_, static_cast<size_t>(at_ - begin_)}; }
  bool cut() const { return cut_; }

 private:
  char* at_;
  char* begin_;
  char* end_;
  bool cut_ = false;
};

// A whole number in decimal; false when there is none or anything follows it.
inline bool parse_number(Text t, int64_t* out) {
  size_t i = 0;
  const bool negative = t.size > 0 && t.data[0] == '-';
  if (negative) i = 1;
  if (i == t.size) return false;
  int64_t value = 0;
  for (; i < t.size; ++i) {
    if (t.data[i] < '0' || t.data[i] > '9' || value > INT64_MAX / 10 - 1) return false;
    value = value * 10 + (t.data[i] - '0');
  }
  *out = negative ? -value : value;
  return true;
}

// Bytes with an optional suffix K, M, G or T (powers of 1024).
inline bool parse_bytes(Text t, uint64_t* out) {
  if (t.size == 0) return false;
  int shift = 0;
  switch (t.data[t.size - 1] | 0x20) {
    case 'k': shift = 10; break;
    case 'm': shift = 20; break;
    case 'g': shift = 30; break;
    case 't': shift = 40; break;
  }
  if (shift != 0) --t.size;
  int64_t number = 0;
  if (!parse_number(t, &number) || number < 0 || number > (INT64_MAX >> shift)) return false;
  *out = static_cast<uint64_t>(number) << shift;
  return true;
}

inline uint64_t hash(Text t, uint64_t seed) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15u;
  uint64_t h = seed ^ (t.size * kMultiplier);
  const char* p = t.data;
  size_t n = t.size;
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    h = (h ^ word) * kMultiplier;
    h ^= h >> 29;
  }
  uint64_t tail = 0;
  memcpy(&tail, p, n);
  h = (h ^ tail) * kMultiplier;
  return h ^ (h >> 32);
}

}  // namespace weir::base
