// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/scan.h"

#include <algorithm>
#include <cstring>

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

}  // namespace

Result<std::vector<Message>> scan(const PosixFile& file) {
  Result<int64_t> size = file.size();
  if (!size.ok()) return size.status();
  std::vector<Message> messages;
  for (int64_t at = 0; at + kIndicatorBytes <= *size;) {
    char head[kIndicatorBytes];
    WEIR_TRY(file.read_at(head, sizeof head, at));
    Message message{at, 0, head[7]};
    if (std::memcmp(head, "GRIB", 4) != 0 || (message.edition != 1 && message.edition != 2)) {
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
