// SPDX-License-Identifier: Apache-2.0
#include "layers/stripe/index.h"

namespace weir::layers::stripe {
namespace {

constexpr char kFirstLine[] = "weir stripe 1\n";
constexpr char kUnit[] = "unit_bytes ";
constexpr char kPiece[] = "piece ";

bool begins(base::Text text, const char* with, size_t size) {
  return text.size >= size && memcmp(text.data, with, size) == 0;
}

base::Text line_of(base::Text* text) {
  const auto* end = static_cast<const char*>(memchr(text->data, '\n', text->size));
  const size_t size = end != nullptr ? static_cast<size_t>(end - text->data) : text->size;
  const base::Text line{text->data, size};
  const size_t whole = end != nullptr ? size + 1 : size;
  *text = {text->data + whole, text->size - whole};
  return line;
}

// FNV-1a, 64 bits (Fowler, Noll, Vo).
uint64_t hash(base::Text text) {
  uint64_t h = 0xcbf29ce484222325;
  for (size_t i = 0; i < text.size; ++i)
    h = (h ^ static_cast<uint8_t>(text.data[i])) * 0x100000001b3;
  return h;
}

base::Text last_part(base::Text path) {
  size_t at = path.size;
  while (at > 0 && path.data[at - 1] != '/') --at;
  return {path.data + at, path.size - at};
}

}  // namespace

bool is_cut(base::Text text) {
  const size_t n = text.size < sizeof kFirstLine - 1 ? text.size : sizeof kFirstLine - 1;
  return memcmp(text.data, kFirstLine, n) == 0 && (n == 0 || text.data[text.size - 1] != '\n');
}

bool parse(base::Text text, Index* to) {
  *to = {};
  if (!begins(text, kFirstLine, sizeof kFirstLine - 1)) return false;
  line_of(&text);
  while (text.size > 0) {
    const base::Text line = line_of(&text);
    if (begins(line, kUnit, sizeof kUnit - 1)) {
      int64_t unit = 0;
      if (!base::parse_number({line.data + sizeof kUnit - 1, line.size - (sizeof kUnit - 1)},
                              &unit) ||
          unit <= 0)
        return false;
      to->unit = static_cast<uint64_t>(unit);
    } else if (begins(line, kPiece, sizeof kPiece - 1) && to->pieces < kMostPieces) {
      to->path[to->pieces++] = {line.data + sizeof kPiece - 1, line.size - (sizeof kPiece - 1)};
    } else {
      return false;
    }
  }
  return to->unit != 0 && to->pieces >= 2;
}

bool compose(base::Text directories, uint64_t unit, base::Text path, uint64_t identity, char* text,
             size_t size, Index* to) {
  base::Writer writer(text, size);
  writer.add(kFirstLine).add(kUnit).add_number(unit).add("\n");
  uint32_t number = 0;
  for (size_t i = 0; i < directories.size;) {
    size_t end = i;
    while (end < directories.size && directories.data[end] != ',') ++end;
    if (number == kMostPieces) return false;
    writer.add(kPiece)
        .add(base::Text{directories.data + i, end - i})
        .add("/")
        .add(last_part(path))
        .add(".");
    writer.add_number(hash(path) ^ identity).add(".").add_number(number++).add("\n");
    i = end + 1;
  }
  return !writer.cut() && parse(writer.view(), to);
}

uint64_t piece_bytes(uint64_t file_bytes, uint64_t unit, uint32_t pieces, uint32_t i) {
  const uint64_t whole = file_bytes / unit,
                 rest = file_bytes % unit;  // whole stripes, bytes of the last
  const uint64_t stripes = whole / pieces + (i < whole % pieces ? 1 : 0);
  return stripes * unit + (i == whole % pieces ? rest : 0);
}

uint64_t file_bytes(uint64_t piece_bytes, uint64_t unit, uint32_t pieces, uint32_t i) {
  if (piece_bytes == 0) return 0;
  const uint64_t last = piece_bytes - 1;
  return (last / unit * pieces + i) * unit + last % unit + 1;
}

}  // namespace weir::layers::stripe
