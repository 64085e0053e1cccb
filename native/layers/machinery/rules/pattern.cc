// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/rules/pattern.h"

namespace weir::rules {
namespace {

bool is_special(char c) { return c == '*' || c == '?' || c == '[' || c == '\\'; }

bool is_upper(unsigned char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(unsigned char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

// Whether c is of the class `name` of the C locale; false for a class that does not exist.
bool in_class(base::Text name, unsigned char c) {
  struct Class {
    const char* name;
    bool (*has)(unsigned char);
  };
  static constexpr Class kClasses[] = {
      {"alnum", [](unsigned char x) { return is_upper(x) || is_lower(x) || is_digit(x); }},
      {"alpha", [](unsigned char x) { return is_upper(x) || is_lower(x); }},
      {"blank", [](unsigned char x) { return x == ' ' || x == '\t'; }},
      {"cntrl", [](unsigned char x) { return x < 32 || x == 127; }},
      {"digit", is_digit},
      {"graph", [](unsigned char x) { return x > 32 && x < 127; }},
      {"lower", is_lower},
      {"print", [](unsigned char x) { return x >= 32 && x < 127; }},
      {"punct",
       [](unsigned char x) {
         return x > 32 && x < 127 && !is_upper(x) && !is_lower(x) && !is_digit(x);
       }},
      {"space", [](unsigned char x) { return x == ' ' || (x >= 9 && x <= 13); }},
      {"upper", is_upper},
      {"xdigit",
       [](unsigned char x) {
         return is_digit(x) || (x >= 'a' && x <= 'f') || (x >= 'A' && x <= 'F');
       }},
  };
  for (const Class& known : kClasses) {
    if (name.size == strlen(known.name) && memcmp(name.data, known.name, name.size) == 0)
      return known.has(c);
  }
  return false;
}

// The bracket expression at p, whose [ is p[0]: bytes it takes (0: it has no end, and [ stands for
// itself); whether c is in it.
size_t bracket(base::Text p, unsigned char c, bool* inside) {
  size_t i = 1;
  const bool negated = i < p.size && (p.data[i] == '!' || p.data[i] == '^');
  if (negated) ++i;
  bool found = false;
  for (const size_t first = i; i < p.size; ) {
    if (p.data[i] == ']' && i != first) {
      *inside = found != negated;
      return i + 1;
    }
    if (p.data[i] == '[' && i + 1 < p.size && p.data[i + 1] == ':') {
      size_t end = i + 2;
      while (end < p.size && is_lower(static_cast<unsigned char>(p.data[end]))) ++end;
      if (end + 1 < p.size && p.data[end] == ':' && p.data[end + 1] == ']') {
        found |= in_class({p.data + i + 2, end - i - 2}, c);
        i = end + 2;
        continue;
      }
    }
    if (p.data[i] == '\\' && i + 1 < p.size) ++i;
    const auto low = static_cast<unsigned char>(p.data[i++]);
    auto high = low;
    if (i + 1 < p.size && p.data[i] == '-' && p.data[i + 1] != ']') {
      ++i;
      if (p.data[i] == '\\' && i + 1 < p.size) ++i;
      high = static_cast<unsigned char>(p.data[i++]);
    }
    found |= low <= c && c <= high;
  }
  return 0;
}

// What the pattern's next element, not a *, takes of the pattern when it fits c; 0 when it does
// not.
size_t element(base::Text p, unsigned char c) {
  if (p.data[0] == '?') return 1;
  if (p.data[0] == '[') {
    bool inside = false;
    const size_t taken = bracket(p, c, &inside);
    if (taken != 0) return inside ? taken : 0;
  }
  if (p.data[0] == '\\') {
    if (p.size == 1) return 0;  // a pattern that ends within itself fits nothing
    return static_cast<unsigned char>(p.data[1]) == c ? 2 : 0;
  }
  return static_cast<unsigned char>(p.data[0]) == c ? 1 : 0;
}

}  // namespace

// Only the last * can be the one to take more: time is at most the product of the lengths, and the
// stack stays flat.
bool fits(base::Text pattern, base::Text text) {
  size_t p = 0, t = 0, star = SIZE_MAX, resume = 0;
  for (;;) {
    if (p < pattern.size && pattern.data[p] == '*') {
      star = ++p;
      resume = t;
      continue;
    }
    if (t == text.size) return p == pattern.size;
    const size_t taken = p < pattern.size ? element({pattern.data + p, pattern.size - p},
                                                    static_cast<unsigned char>(text.data[t]))
                                          : 0;
    if (taken != 0) {
      p += taken;
      ++t;
    } else if (star != SIZE_MAX) {
      p = star;
      t = ++resume;
    } else {
      return false;
    }
  }
}

Pattern prepare(base::Text text) {
  Pattern made;
  made.text = text;
  size_t head = 0;
  while (head < text.size && !is_special(text.data[head])) ++head;
  made.head = static_cast<uint32_t>(head);
  if (head == text.size) {
    made.simple = true;
    return made;
  }
  if (text.data[head] != '*') return made;
  size_t tail = head + 1;
  while (tail < text.size && !is_special(text.data[tail])) ++tail;
  if (tail != text.size) return made;
  made.simple = made.star = true;
  made.tail = static_cast<uint32_t>(text.size - head - 1);
  return made;
}

bool Pattern::matches(base::Text name) const {
  if (text.size == 0) return true;
  if (name.size < head || memcmp(name.data, text.data, head) != 0) return false;
  if (!simple)
    return fits({text.data + head, text.size - head}, {name.data + head, name.size - head});
  if (!star) return name.size == head;
  return name.size >= size_t{head} + tail &&
         memcmp(name.data + name.size - tail, text.data + text.size - tail, tail) == 0;
}

}  // namespace weir::rules
