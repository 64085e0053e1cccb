// SPDX-License-Identifier: Apache-2.0
// Values that are the same in TOML, the environment and the program's own calls.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "output/config/config.h"
#include "output/model/text.h"

namespace weir::output {

const char* name_of(Mode mode) {
  constexpr const char* kNames[] = {"serial", "collective", "servers", "servers+parallel"};
  return kNames[static_cast<int>(mode)];
}

const char* name_of(Placement placement) {
  constexpr const char* kNames[] = {"last", "spread", "nodes"};
  return kNames[static_cast<int>(placement)];
}

const char* name_of(TransportKind transport) {
  constexpr const char* kNames[] = {"auto", "shared", "rma", "two-sided"};
  return kNames[static_cast<int>(transport)];
}

Result<Compression> parse_compression(const std::string& text) {
  if (text == "none") return Compression{};
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const auto kind = name == "deflate" ? Compression::Kind::kDeflate : Compression::Kind::kZstd;
  const int most = kind == Compression::Kind::kDeflate ? 9 : 19;
  int level = 0;
  if ((name == "deflate" || name == "zstd") && colon != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto done = std::from_chars(text.data() + colon + 1, end, level);
    if (done.ec == std::errc() && done.ptr == end && level >= 1 && level <= most)
      return Compression{kind, level};
  }
  return Status(
      WEIR_E_CONFIG,
      "compression " + quoted(text) +
          ": expected \"none\", \"deflate:1\" to \"deflate:9\" or \"zstd:1\" to \"zstd:19\"");
}

Result<Period> parse_period(const std::string& text) {
  const std::vector<std::string> words = {"day", "month", "year"};
  const auto found = std::find(words.begin(), words.end(), text);
  if (found != words.end()) return static_cast<Period>(found - words.begin() + 1);
  return Status(WEIR_E_CONFIG, "rotation " + quoted(text) +
                                   ": expected a number of frames, 0 for one file, or " +
                                   one_of(words));
}

Result<Existing> parse_existing(const std::string& text) {
  const std::vector<std::string> words = {"replace", "refuse", "append"};
  const auto found = std::find(words.begin(), words.end(), text);
  if (found != words.end()) return static_cast<Existing>(found - words.begin());
  return Status(WEIR_E_CONFIG, "existing " + quoted(text) + ": expected " + one_of(words));
}

Result<int64_t> parse_size(const std::string& text) {
  struct Unit {
    const char* name;
    double bytes;
  };
  constexpr Unit kUnits[] = {{"", 1},       {"B", 1},        {"K", 0x1p10}, {"KiB", 0x1p10},
                             {"M", 0x1p20}, {"MiB", 0x1p20}, {"G", 0x1p30}, {"GiB", 0x1p30},
                             {"T", 0x1p40}, {"TiB", 0x1p40}, {"kB", 1e3},   {"KB", 1e3},
                             {"MB", 1e6},   {"GB", 1e9},     {"TB", 1e12}};
  double number = 0;
  const char* end = text.data() + text.size();
  const auto done = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (done.ec == std::errc() && std::isfinite(number) && number >= 0) {
    const char* rest = done.ptr;
    while (rest != end && *rest == ' ') rest++;
    for (const Unit& unit : kUnits) {
      const double bytes = number * unit.bytes;
      if (std::string(rest, end) == unit.name && bytes < 0x1p62) return static_cast<int64_t>(bytes);
    }
  }
  return Status(
      WEIR_E_CONFIG,
      "size " + quoted(text) +
          ": expected a number of bytes, or one with a unit such as \"256MiB\" or \"1.5GB\"");
}

}  // namespace weir::output
