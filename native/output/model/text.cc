// SPDX-License-Identifier: Apache-2.0
#include "output/model/text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <sstream>

namespace weir::output {

size_t whole_characters(const std::string& text, size_t most) {
  if (text.size() <= most) return text.size();
  constexpr size_t kLongest = 4;  // bytes of a character of UTF-8
  for (size_t end = most; end > 0 && most - end < kLongest; end--) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80) return end;
  }
  return most;  // it is no UTF-8
}

std::string quoted(const std::string& text) {
  constexpr size_t kShown = 200;
  std::string out = "'";
  for (size_t i = 0, end = whole_characters(text, kShown); i < end; i++) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != 0x7f) {
      out += text[i];
    } else {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x", c);
      out += code;
    }
  }
  return out + (text.size() > kShown ? "...'" : "'");
}

std::string one_of(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); i++) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

std::string number_text(double value) {
  char text[40];
  const auto done = std::to_chars(text, text + sizeof text, value);
  return std::string(text, done.ptr);
}

std::vector<double> numbers_in(const std::string& text, bool* all) {
  std::istringstream words(text);
  std::vector<double> numbers;
  double number = 0;
  std::string word;
  bool is_number = true;
  while (is_number && words >> word) {
    std::istringstream one(word);
    is_number = one >> number && one.peek() == std::istringstream::traits_type::eof();
    if (is_number) numbers.push_back(number);
  }
  if (all) *all = is_number;
  return numbers;
}

namespace {

// Edits (insert, delete, replace) from one word to the other: V. Levenshtein, 1966.
size_t edits(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); j++) row[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(const std::string& word, const std::vector<std::string>& words) {
  constexpr size_t kLongest = 255;  // nobody mistypes a novel
  if (word.size() > kLongest) return "";
  size_t best = (word.size() < 3 ? 1 : std::max<size_t>(2, word.size() / 3)) + 1;
  const std::string* found = nullptr;
  for (const std::string& other : words) {
    const size_t distance = edits(word, other);
    if (distance < best) {
      best = distance;
      found = &other;
    }
  }
  return found ? "; did you mean " + quoted(*found) + "?" : "";
}

}  // namespace weir::output
