// SPDX-License-Identifier: Apache-2.0
// Taking a compiled text apart: parts between separators, percent codes.
#pragma once

#include "base/text.h"

namespace weir::rules {

// Takes the next part off *rest. A text of n separators has n + 1 parts, an empty one has one;
// after the last, rest->data is null.
inline bool next_part(base::Text* rest, char separator, base::Text* part) {
  if (rest->data == nullptr) return false;
  const void* end = rest->size != 0 ? memchr(rest->data, separator, rest->size) : nullptr;
  if (end == nullptr) {
    *part = *rest;
    *rest = {};
    return true;
  }
  const size_t n = static_cast<size_t>(static_cast<const char*>(end) - rest->data);
  *part = {rest->data, n};
  *rest = {rest->data + n + 1, rest->size - n - 1};
  return true;
}

// Parts before and behind the first separator; false, and both left alone, when there is none.
inline bool split(base::Text whole, char separator, base::Text* before, base::Text* behind) {
  const void* at = whole.size != 0 ? memchr(whole.data, separator, whole.size) : nullptr;
  if (at == nullptr) return false;
  const size_t n = static_cast<size_t>(static_cast<const char*>(at) - whole.data);
  *before = {whole.data, n};
  *behind = {whole.data + n + 1, whole.size - n - 1};
  return true;
}

inline int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// %41 to A, into `to`, which has room for raw.size bytes. False at a code that is none, or is that
// of a zero.
inline bool decode(base::Text raw, char* to, size_t* bytes) {
  size_t n = 0;
  for (size_t i = 0; i < raw.size; ++i) {
    char c = raw.data[i];
    if (c == '%') {
      if (raw.size - i < 3) return false;
      const int high = hex_digit(raw.data[i + 1]), low = hex_digit(raw.data[i + 2]);
      if (high < 0 || low < 0 || high + low == 0) return false;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    to[n++] = c;
  }
  *bytes = n;
  return true;
}

}  // namespace weir::rules
