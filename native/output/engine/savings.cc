// SPDX-License-Identifier: Apache-2.0
#include "output/engine/savings.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "output/core/trace.h"
#include "output/model/text.h"
#include "output/transport/team.h"

namespace weir::output {
namespace {

void add(Saving* sum, const Saving& part) {
  if (part.pieces == 0) return;
  sum->least_bits =
      sum->pieces == 0 ? part.least_bits : std::min(sum->least_bits, part.least_bits);
  sum->most_bits = std::max(sum->most_bits, part.most_bits);
  sum->value_bytes += part.value_bytes;
  sum->file_bytes += part.file_bytes;
  sum->pieces += part.pieces;
  sum->bits += part.bits;
}

std::string line_of(const std::string& field, const Saving& s) {
  constexpr double kMB = 1e6;
  char text[200];
  std::snprintf(text, sizeof text, ": %.3f MB in %.3f MB (%.1f %%)",
                static_cast<double>(s.value_bytes) / kMB, static_cast<double>(s.file_bytes) / kMB,
                100 * static_cast<double>(s.file_bytes) /
                    static_cast<double>(std::max<int64_t>(1, s.value_bytes)));
  std::string line = "  field " + quoted(field) + text;
  if (s.most_bits == 0) return line + "\n";
  std::snprintf(text, sizeof text, ", %d to %d bits kept (%.1f on average)",
                static_cast<int>(s.least_bits), static_cast<int>(s.most_bits),
                static_cast<double>(s.bits) / static_cast<double>(s.pieces));
  return line + text + "\n";
}

}  // namespace

void trace_savings(const File& file, const StreamFile& stream, const std::string& name) {
  if (event_sink() == nullptr) return;
  const std::vector<Saving> savings = file.savings();
  for (const int v : stream.fields) {
    const auto at = static_cast<size_t>(v);
    if (at >= savings.size() || savings[at].pieces == 0) continue;
    const Saving& s = savings[at];
    const Traced traced(Event::kClose, name, s.file_bytes,
                        stream.file.variables[at].name + ":" + std::to_string(s.least_bits) + ":" +
                            std::to_string(s.most_bits));
  }
}

Status report_savings(Team& owners, const File& file, const StreamFile& stream,
                      const std::string& what) {
  const std::vector<Saving> mine = file.savings();
  const auto bytes = std::as_bytes(std::span(mine));
  Result<std::vector<std::vector<char>>> all =
      owners.gather({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 0);
  if (!all.ok()) return all.status();
  std::vector<Saving> sums(stream.file.variables.size());
  for (const std::vector<char>& part : *all) {
    for (size_t v = 0; v < part.size() / sizeof(Saving) && v < sums.size(); v++) {
      Saving one;
      std::memcpy(&one, part.data() + v * sizeof one, sizeof one);
      add(&sums[v], one);
    }
  }
  std::string text;
  for (int v : stream.fields) {
    const auto at = static_cast<size_t>(v);
    if (sums[at].pieces > 0) text += line_of(stream.file.variables[at].name, sums[at]);
  }
  if (!text.empty()) fprintf(stderr, "weir: %s\n%s", what.c_str(), text.c_str());
  return {};
}

}  // namespace weir::output
