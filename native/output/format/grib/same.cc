// SPDX-License-Identifier: Apache-2.0
// Whether a file has the messages that a stream writes now, so that more may follow: the same
// edition, fields, grids, tables and packings. What differs between two messages of a field is
// found in the octets of their sections.
#include <algorithm>
#include <cstring>

#include "output/format/grib/reader.h"
#include "output/model/text.h"

namespace weir::output::grib {
namespace {

using Octets = std::span<const char>;

// A part of a message; empty: it is not there.
Octets part(Octets message, int64_t first, int64_t count) {
  if (first < 0 || count < 0 || first + count > static_cast<int64_t>(message.size())) return {};
  return message.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
}

Octets section1(Octets message, int64_t at) {
  return part(message, at, static_cast<int64_t>(take_number(message.data() + at, 3)));
}

// The parts of a message that are the same in all messages of a field.
struct Parts {
  Octets origin, grid, product, coefficients, packing;
};

Parts of_edition2(Octets message) {
  const auto s = sections_of(message.data(), static_cast<int64_t>(message.size()));
  if (!s) return {};
  const auto number = [&](int64_t at, int bytes) {
    return static_cast<int64_t>(take_number(message.data() + at, bytes));
  };
  const int64_t four = s->at[4], length = number(four, 4), values = 4 * number(four + 5, 2);
  return {part(message, s->at[1] + 5, 6), part(message, s->at[3], number(s->at[3], 4)),
          part(message, four + 7, 4), part(message, four + length - values, values),
          part(message, s->at[5] + 9, 2)};
}

Parts of_edition1(Octets message) {
  const Octets one = section1(message, 8);
  if (one.size() < 28) return {};
  Parts parts{part(one, 3, 3), {}, part(one, 8, 1), {}, {}};
  int64_t at = 8 + static_cast<int64_t>(one.size());
  const int flags = static_cast<unsigned char>(one[7]);
  if (flags & 0x80) parts.grid = section1(message, at), at += std::ssize(parts.grid);
  if (flags & 0x40) at += std::ssize(section1(message, at));
  parts.packing = part(message, at + 3, 1);
  return parts;
}

bool same_octets(Octets a, Octets b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

// In edition 1 the other half octet is the number of unused bits.
bool same_packing(const Parts& a, const Parts& b, int edition) {
  if (edition == 2) return same_octets(a.packing, b.packing);
  return !a.packing.empty() && !b.packing.empty() &&
         ((a.packing[0] ^ b.packing[0]) & 0xf0) == 0;
}

// Of the sections of regular grids (template 0 and 40 of edition 2, types 0 and 4 of edition 1):
// the first octet, from 0, and how many there are.
struct GridNumber {
  const char* name;
  int at[3], bytes[3];  // by edition
  bool in_degrees;
};
constexpr GridNumber kGridNumbers[] = {
    {"shape of the earth", {0, 0, 14}, {0, 0, 1}, false},
    {"flags of resolution and components", {0, 16, 54}, {0, 1, 1}, false},
    {"first latitude", {0, 10, 46}, {0, 3, 4}, true},
    {"first longitude", {0, 13, 50}, {0, 3, 4}, true},
    {"last latitude", {0, 17, 55}, {0, 3, 4}, true},
    {"last longitude", {0, 20, 59}, {0, 3, 4}, true},
    {"distance of longitudes", {0, 23, 63}, {0, 2, 4}, true},
    {"distance of latitudes", {0, 25, 67}, {0, 2, 4}, true},
    {"scanning mode", {0, 27, 71}, {0, 1, 1}, false}};

// In edition 1 the shape is one of the flags.
std::string grid_number(Octets grid, const GridNumber& number, int edition) {
  const int bytes = number.bytes[edition];
  const char* at = grid.data() + number.at[edition];
  if (!number.in_degrees) return std::to_string(take_number(at, bytes));
  if (take_number(at, bytes) == (uint64_t{1} << 8 * bytes) - 1) return "not given";
  return number_text(static_cast<double>(take_signed(at, bytes)) / (edition == 1 ? 1e3 : 1e6)) +
         " degrees";
}

// "its grid (distance of longitudes: 0.333 degrees in the file, not given in this run)"
std::string other_grid(Octets mine, Octets theirs, int edition) {
  const size_t least = edition == 1 ? 28 : 72;
  const auto type = [&](Octets grid) {
    return edition == 1 ? take_number(grid.data() + 5, 1) : take_number(grid.data() + 12, 2);
  };
  if (mine.size() < least || theirs.size() < least || type(mine) != type(theirs) ||
      (type(mine) != 0 && type(mine) != (edition == 1 ? 4u : 40u)))
    return "its grid";
  std::string text;
  for (const GridNumber& number : kGridNumbers) {
    const std::string here = grid_number(mine, number, edition),
                      there = grid_number(theirs, number, edition);
    if (here == there) continue;
    text += (text.empty() ? "" : "; ") + std::string(number.name) + ": " + there +
            " in the file, " + here + " in this run";
  }
  return text.empty() ? "its grid" : "its grid (" + text + ")";
}

// "" or what differs.
std::string other_than(const Parts& mine, const Parts& theirs, int edition) {
  if (!same_octets(mine.origin, theirs.origin)) return "its centre or tables";
  if (!same_octets(mine.grid, theirs.grid)) return other_grid(mine.grid, theirs.grid, edition);
  if (!same_octets(mine.product, theirs.product)) return "its product (template, parameter)";
  if (!same_octets(mine.coefficients, theirs.coefficients)) return "its coefficients pv";
  return "";
}

}  // namespace

Status GribReader::cannot_follow(const std::string& why) const {
  return {WEIR_E_FORMAT, "cannot go on with " + file_.path() + ": " + why +
                             ", not what the stream writes now; write to another path and join "
                             "the files (cat FILE ANOTHER), or run with the settings of the file"};
}

Status GribReader::same_field(const FileDescription& description, int variable, int edition,
                              std::vector<bool>* claimed) const {
  std::unique_ptr<Encoder> encoder;
  Result<Known> known = find_field(description, variable, edition, &encoder);
  if (!known.ok()) return cannot_follow(known.status().message());
  Result<const Bytes*> header = encoder->header(0);
  if (!header.ok()) return header.status();
  const std::string what = "field " + quoted(encoder->plan().field) + ", ";
  const auto parts_of = [&](Octets octets) {
    return edition == 1 ? of_edition1(octets) : of_edition2(octets);
  };
  const Parts mine = parts_of(**header);
  const int process = identity_of(**header, edition).process;
  bool is_packed_so = false;
  for (const std::vector<size_t>& level : known->levels) {
    for (const size_t message : level) {
      (*claimed)[message] = true;
      if (identities_[message].process != process)
        return cannot_follow(what + "its operation over time");
      Result<std::vector<char>> head = read_head(file_, messages_[message]);
      if (!head.ok()) return head.status();
      Parts theirs = parts_of(*head);
      if (theirs.packing.empty()) {  // of edition 1, where it is behind a long grid or bitmap
        head->resize(static_cast<size_t>(messages_[message].length));
        WEIR_TRY(file_.read_at(head->data(), head->size(), messages_[message].offset));
        theirs = parts_of(*head);
      }
      if (const std::string differs = other_than(mine, theirs, edition); !differs.empty())
        return cannot_follow(what + differs);
      is_packed_so = is_packed_so || same_packing(mine, theirs, edition);
    }
  }
  // Messages whose values are all the same may be in simple packing.
  return is_packed_so ? Status() : cannot_follow(what + "its packing");
}

Status GribReader::same(const FileDescription& description, int edition) const {
  WEIR_TRY(check_whole());
  Result<int64_t> size = file_.size();
  if (!size.ok()) return size.status();
  int64_t bytes = 0;
  for (const Message& message : messages_) {
    if (!message.sections.empty())
      return cannot_follow("several fields in one message (take them apart: grib_copy IN OUT)");
    bytes += message.length;
  }
  if (bytes != *size)
    return cannot_follow("text or zeros between its messages (take them out: grib_copy IN OUT)");
  for (const Message& message : messages_) {
    if (message.edition != edition) {
      return cannot_follow("edition " + std::to_string(message.edition) + " of GRIB");
    }
  }
  std::vector<bool> claimed(messages_.size());
  for (size_t v = 0; v < description.variables.size(); v++) {
    if (is_field(description, static_cast<int>(v), edition))
      WEIR_TRY(same_field(description, static_cast<int>(v), edition, &claimed));
  }
  const auto other = std::find(claimed.begin(), claimed.end(), false);
  if (other == claimed.end()) return {};
  const auto first = static_cast<size_t>(other - claimed.begin());
  return cannot_follow("another field (" + in_words(identities_[first]) + ")");
}

}  // namespace weir::output::grib
