// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/scan.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "output/format/grib/bytes.h"

namespace weir::output::grib {
namespace {

// Edition 1 has three octets for the length. ecCodes and cdo write longer messages as a number of
// 120 octets, with the first bit set, and what is too much of them as the length of section 4.
Result<int64_t> length1(const PosixFile& file, int64_t offset, int64_t size, const char* head) {
  const auto plain = static_cast<int64_t>(take_number(head + 4, 3));
  if ((plain & 0x800000) == 0) return plain;
  int64_t at = offset + 8;
  char section[8];
  const auto next = [&]() -> Status {
    if (at + 8 > size) return {WEIR_E_FORMAT, "torn"};
    WEIR_TRY(file.read_at(section, sizeof section, at));
    return {};
  };
  WEIR_TRY(next());
  const int flags = static_cast<unsigned char>(section[7]);
  at += static_cast<int64_t>(take_number(section, 3));
  for (int bit : {0x80, 0x40}) {
    if ((flags & bit) == 0) continue;
    WEIR_TRY(next());
    at += static_cast<int64_t>(take_number(section, 3));
  }
  WEIR_TRY(next());
  const auto four = static_cast<int64_t>(take_number(section, 3));
  const int64_t length = (plain & 0x7fffff) * 120;
  return four < 120 ? length - four + 4 : plain;
}

// Headings of the WMO's telecommunication have some 20 to 50 octets, with what files of bulletins
// put in front of them below 100.
constexpr int64_t kMostHeadingBytes = 512;

// ECMWF's archive fills each message up to a multiple of so many octets with zeros.
constexpr int64_t kFilledTo = 120;

bool is_text(char c) {
  return (c >= ' ' && c <= '~') || c == '\r' || c == '\n' || c == '\t' || c == '\1' || c == '\3';
}

Result<std::string> read_some(const PosixFile& file, int64_t from, int64_t most) {
  Result<int64_t> size = file.size();
  if (!size.ok()) return size.status();
  std::string some(static_cast<size_t>(std::clamp<int64_t>(*size - from, 0, most)), '\0');
  if (!some.empty()) WEIR_TRY(file.read_at(some.data(), some.size(), from));
  return some;
}

}  // namespace

Result<std::optional<int64_t>> find_message(const PosixFile& file, int64_t from) {
  Result<std::string> read = read_some(file, from, kMostHeadingBytes + kIndicatorBytes);
  if (!read.ok()) return read.status();
  const std::string& some = *read;
  int64_t zeros = 0;
  for (size_t i = 0; i + kIndicatorBytes <= some.size(); i++) {
    if (i > 0 && some[i - 1] == '\0' ? ++zeros == kFilledTo : i > 0 && !is_text(some[i - 1])) break;
    const char edition = some[i + 7];
    if (some.compare(i, 4, "GRIB") == 0 && (edition == 1 || edition == 2))
      return std::optional(from + static_cast<int64_t>(i));
  }
  return std::optional<int64_t>();
}

Result<bool> is_end(const PosixFile& file, int64_t from) {
  Result<std::string> read = read_some(file, from, kMostHeadingBytes + 1);
  if (!read.ok()) return read.status();
  const auto other = std::find_if(read->begin(), read->end(), [](char c) { return c != '\0'; });
  return std::ssize(*read) <= kMostHeadingBytes && other - read->begin() < kFilledTo &&
         std::all_of(other, read->end(), [](char c) { return std::strchr("\r\n\3 ", c) && c; });
}

Result<std::vector<Message>> scan(const PosixFile& file) {
  Result<int64_t> size = file.size();
  if (!size.ok()) return size.status();
  std::vector<Message> messages;
  for (int64_t at = 0; at + kIndicatorBytes <= *size;) {
    char head[kIndicatorBytes];
    WEIR_TRY(file.read_at(head, sizeof head, at));
    Message message{at, 0, head[7]};
    if (std::memcmp(head, "GRIB", 4) != 0 || (message.edition != 1 && message.edition != 2)) {
      Result<std::optional<int64_t>> next = find_message(file, at);
      if (!next.ok()) return next.status();
      if (next->has_value()) {
        at = **next;
        continue;
      }
      Result<bool> ends = is_end(file, at);
      if (!ends.ok()) return ends.status();
      if (*ends) break;
      return Status(WEIR_E_FORMAT, file.path() + ": at byte " + std::to_string(at) +
                                       " is no message of GRIB, edition 1 or 2");
    }
    if (message.edition == 2) {
      message.length = static_cast<int64_t>(take_number(head + 8, 8));
    } else {
      Result<int64_t> length = length1(file, at, *size, head);
      if (!length.ok()) break;
      message.length = *length;
    }
    char end[4];
    if (message.length < kIndicatorBytes + 4 || message.length > *size - at) break;
    WEIR_TRY(file.read_at(end, sizeof end, at + message.length - 4));
    if (std::memcmp(end, "7777", 4) != 0) break;
    messages.push_back(message);
    at += message.length;
  }
  return messages;
}

Result<std::vector<char>> read_head(const PosixFile& file, const Message& message) {
  for (int64_t bytes = std::min<int64_t>(1024, message.length);; bytes = message.length) {
    std::vector<char> head(static_cast<size_t>(bytes));
    WEIR_TRY(file.read_at(head.data(), head.size(), message.offset));
    if (message.edition == 1 ? bytes >= 64 : sections_of(head.data(), bytes).has_value())
      return head;
    if (bytes == message.length) {
      return Status(WEIR_E_FORMAT, file.path() + ": the message at byte " +
                                       std::to_string(message.offset) +
                                       " has sections that weir does not read");
    }
  }
}

}  // namespace weir::output::grib
