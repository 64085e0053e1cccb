// SPDX-License-Identifier: Apache-2.0
#include "output/format/zarr/json.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace weir::output::zarr {
namespace {

constexpr int kMostDepth = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<Json> parse() {
    Json value;
    if (!read(value, 0)) return std::nullopt;
    blanks();
    if (at_ != text_.size()) return std::nullopt;
    return value;
  }

 private:
  void blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) at_++;
  }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  bool read(Json& value, int depth) {
    blanks();
    if (at_ >= text_.size() || depth > kMostDepth) return false;
    switch (text_[at_]) {
      case '{': return read_object(value, depth);
      case '[': return read_list(value, depth);
      case '"': value.kind = Json::Kind::kText; return read_text(value.text);
      case 't': value.kind = Json::Kind::kBool; value.truth = true; return take("true");
      case 'f': value.kind = Json::Kind::kBool; return take("false");
      case 'n': return take("null");
    }
    value.kind = Json::Kind::kNumber;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value.number);
    if (error != std::errc()) return false;
    at_ = static_cast<size_t>(end - text_.data());
    return true;
  }
  bool read_list(Json& value, int depth) {
    value.kind = Json::Kind::kList;
    at_++;
    blanks();
    if (take("]")) return true;
    for (;;) {
      value.list.emplace_back();
      if (!read(value.list.back(), depth + 1)) return false;
      blanks();
      if (take("]")) return true;
      if (!take(",")) return false;
    }
  }
  bool read_object(Json& value, int depth) {
    value.kind = Json::Kind::kObject;
    at_++;
    blanks();
    if (take("}")) return true;
    for (;;) {
      std::string name;
      blanks();
      if (at_ >= text_.size() || text_[at_] != '"' || !read_text(name)) return false;
      blanks();
      if (!take(":") || !read(value.object[name], depth + 1)) return false;
      blanks();
      if (take("}")) return true;
      if (!take(",")) return false;
    }
  }
  bool read_text(std::string& out) {
    for (at_++; at_ < text_.size(); at_++) {
      const char c = text_[at_];
      if (c == '"') return at_++, true;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (++at_ >= text_.size()) return false;
      const std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
      const size_t plain = from.find(text_[at_]);
      if (plain != std::string_view::npos) {
        out += to[plain];
      } else if (text_[at_] != 'u' || !read_code(out)) {
        return false;
      }
    }
    return false;
  }
  // \uXXXX, of which only characters of the basic plane are made UTF-8: halves of pairs become question marks.
  bool read_code(std::string& out) {
    unsigned code = 0;
    const std::string_view digits = text_.substr(at_ + 1, 4);
    if (digits.size() < 4 || std::from_chars(digits.data(), digits.data() + 4, code, 16).ptr != digits.data() + 4) return false;
    at_ += 4;
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
    } else if (code >= 0xd800 && code < 0xe000) {
      out += '?';
    } else {
      out += {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)), static_cast<char>(0x80 | (code & 0x3f))};
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

const Json kNothing;

}  // namespace

const Json& Json::at(const std::string& name) const {
  const auto found = object.find(name);
  return found == object.end() ? kNothing : found->second;
}

const Json& Json::at(size_t index) const { return index < list.size() ? list[index] : kNothing; }

std::optional<Json> parse_json(std::string_view text) { return Parser(text).parse(); }

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string written(double number) {
  if (std::isnan(number)) return "\"NaN\"";
  if (std::isinf(number)) return number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  char text[32];
  std::string out(text, std::to_chars(text, text + sizeof text, number).ptr);
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

std::string written(const std::vector<int64_t>& list) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); i++) out += (i ? "," : "") + std::to_string(list[i]);
  return out + "]";
}

}  // namespace weir::output::zarr
