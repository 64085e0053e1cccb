// SPDX-License-Identifier: Apache-2.0
#include "output/format/zarr/json.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace weir::output::zarr {
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
