// SPDX-License-Identifier: Apache-2.0
#include "output/format/format.h"
#include "output/model/text.h"

namespace weir::output {

#define WEIR_FORMAT(name, ...) Format& name##_format(const FormatRow& row);
#include "output/format/formats.def"
#undef WEIR_FORMAT

std::span<Format* const> formats() {
#define WEIR_FORMAT(name, order, parallel, compression, most_chunk_bytes, refused, ...) \
  &name##_format(                                                                       \
      {#name, ByteOrder::order, parallel, *compression != '\0', most_chunk_bytes, refused}),
  static Format* const all[] = {
#include "output/format/formats.def"
  };
#undef WEIR_FORMAT
  return all;
}

std::vector<std::string> format_names(bool compressing) {
  std::vector<std::string> names;
  for (const Format* format : formats()) {
    if (format->row().compresses || !compressing) names.push_back(format->name());
  }
  return names;
}

Format* find_format(const std::string& name, std::string* why) {
  for (Format* format : formats()) {
    if (name == format->name()) return format;
  }
  if (why)
    *why = "format " + quoted(name) + "; expected " + one_of(format_names()) +
           did_you_mean(name, format_names());
  return nullptr;
}

Status check_rounding(const std::string& format, const Variable& v) {
  if (!v.rounding.any() || v.compression.kind != Compression::Kind::kNone) return {};
  return {WEIR_E_ARGUMENT,
          format + ": variable " + v.name +
              " is to be rounded (keep_bits, keep_information) but not compressed, which saves "
              "nothing; give its compression, such as \"zstd:1\", in format " +
              one_of(format_names(true))};
}

const FormatRow& format_row(const std::string& name) {
  static constexpr FormatRow kAny = {"", ByteOrder::kNative, true, true, 0, ""};
  const Format* format = find_format(name, nullptr);
  return format ? format->row() : kAny;
}

const Format* format_of_file(const std::string& path) {
  for (const Format* format : formats()) {
    if (format->is_file(path)) return format;
  }
  return nullptr;
}

}  // namespace weir::output
