// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/scan.h"

#include <algorithm>
#include <array>
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

Status unreadable_sections(const PosixFile& file, const Message& message) {
  return {WEIR_E_FORMAT, file.path() + ": the message at byte " + std::to_string(message.offset) +
                             " has sections that weir does not read"};
}

// The sections of a message of edition 2, read in pieces: those of data are passed over.
class Sections2 {
 public:
  Sections2(const PosixFile& file, const Message& message) : file_(file), message_(message) {}

  // One for each field: sections that are not repeated hold for the next one, too (regulation
  // 92.1.4); a bitmap that was defined before is that one (code table 6.0). fails: WEIR_E_FORMAT
  Result<std::vector<Message>> fields() {
    std::vector<Message> all;
    std::array<Extent, 8> at = {};
    Extent bitmap;
    bool complete = true;  // each field has sections 1 and 3 to 6
    const int64_t end = message_.offset + message_.length - 4;
    for (int64_t next = message_.offset + kIndicatorBytes; next < end;) {
      char head[6];
      WEIR_TRY(read(next, head, sizeof head));
      const Extent section{next, static_cast<int64_t>(take_number(head, 4))};
      const auto number = static_cast<size_t>(head[4]);
      if (section.length < 5 || number < 1 || number > 7 || section.length > end - next)
        return unreadable();
      at[number] = section;
      constexpr char kAsBefore = static_cast<char>(254);
      if (number == 6 && head[5] == 0) bitmap = section;
      if (number == 6 && head[5] == kAsBefore) at[6] = bitmap;
      next += section.length;
      if (number != 7) continue;
      for (const size_t i : {1, 3, 4, 5, 6}) complete &= at[i].length > 0;
      all.push_back(message_);
      for (size_t i = 1; i < at.size(); i++) {
        if (at[i].length > 0) all.back().sections.push_back(at[i]);
      }
    }
    if (all.empty()) {
      return Status(WEIR_E_FORMAT, file_.path() + ": the message at byte " +
                                       std::to_string(message_.offset) +
                                       " has no section of data (7); take it out of the file, or "
                                       "copy the file again");
    }
    if (all.size() == 1) all[0].sections.clear();
    if (all.size() > 1 && !complete) return unreadable();
    return all;
  }

 private:
  Status unreadable() const { return unreadable_sections(file_, message_); }
  Status read(int64_t at, char* to, size_t bytes) {
    if (at < from_ || at + static_cast<int64_t>(bytes) > from_ + std::ssize(some_)) {
      constexpr int64_t kSome = 1024;
      from_ = at;
      some_.resize(static_cast<size_t>(
          std::min(kSome, message_.offset + message_.length - at)));
      WEIR_TRY(file_.read_at(some_.data(), some_.size(), at));
    }
    if (at + static_cast<int64_t>(bytes) > from_ + std::ssize(some_))
      return {WEIR_E_FORMAT, file_.path() + ": a section is cut off at byte " + std::to_string(at)};
    std::copy_n(some_.begin() + (at - from_), bytes, to);
    return {};
  }

  const PosixFile& file_;
  const Message& message_;
  int64_t from_ = 0;
  std::vector<char> some_;
};

// Of a field of several in a message: the indicator, and all sections but the last ones.
Status take_sections(const PosixFile& file, const Message& message, size_t but_last,
                     std::vector<char>* to) {
  to->resize(static_cast<size_t>(kIndicatorBytes));
  WEIR_TRY(file.read_at(to->data(), to->size(), message.offset));
  for (size_t i = 0; i + but_last < message.sections.size(); i++) {
    const Extent& section = message.sections[i];
    const size_t before = to->size(), bytes = static_cast<size_t>(section.length);
    to->resize(before + bytes);
    WEIR_TRY(file.read_at(to->data() + before, bytes, section.offset));
  }
  return {};
}

void end_message2(std::vector<char>* message) {
  for (const char c : {'7', '7', '7', '7'}) message->push_back(c);
  put_number(message->data() + 8, 8, message->size());
}

}  // namespace

Result<std::vector<char>> read_message(const PosixFile& file, const Message& message) {
  std::vector<char> bytes;
  if (message.sections.empty()) {
    bytes.resize(static_cast<size_t>(message.length));
    WEIR_TRY(file.read_at(bytes.data(), bytes.size(), message.offset));
    return bytes;
  }
  WEIR_TRY(take_sections(file, message, 0, &bytes));
  end_message2(&bytes);
  return bytes;
}

Result<std::vector<char>> read_without_data(const PosixFile& file, const Message& message) {
  Result<std::vector<char>> head = read_head(file, message);
  if (!head.ok()) return head;
  if (message.edition == 2) {
    const auto sections = sections_of(head->data(), std::ssize(*head));
    const int64_t five = sections->at[5];
    head->resize(static_cast<size_t>(five) + take_number(head->data() + five, 4));
    for (const char c : {0, 0, 0, 6, 6, -1, 0, 0, 0, 5, 7}) head->push_back(static_cast<char>(c));
    end_message2(&*head);
    return head;
  }
  const auto has = [&](int64_t bytes) -> Status {
    if (bytes <= std::ssize(*head)) return {};
    if (bytes > message.length) return {WEIR_E_FORMAT, "torn"};
    head->resize(static_cast<size_t>(bytes));
    return file.read_at(head->data(), head->size(), message.offset);
  };
  constexpr int64_t kIndicator1 = 8, kFlags = 7;
  constexpr char kHasGrid = static_cast<char>(0x80), kHasBitmap = 0x40;
  int64_t end = kIndicator1 + static_cast<int64_t>(take_number(head->data() + kIndicator1, 3));
  WEIR_TRY(has(end + 3));
  char& flags = (*head)[kIndicator1 + kFlags];
  if (flags & kHasGrid) end += static_cast<int64_t>(take_number(head->data() + end, 3));
  WEIR_TRY(has(end));
  (*head)[kIndicator1 + kFlags] &= static_cast<char>(~kHasBitmap);
  head->resize(static_cast<size_t>(end));
  for (const char c : {0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0}) head->push_back(static_cast<char>(c));
  for (const char c : {'7', '7', '7', '7'}) head->push_back(c);
  put_number(head->data() + 4, 3, head->size());
  return head;
}

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
                                       " is no message of GRIB, edition 1 or 2, nor text "
                                       "or zeros between two; take the messages out of the file "
                                       "(grib_copy IN OUT)");
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
    if (message.edition == 1) {
      messages.push_back(message);
    } else {
      Result<std::vector<Message>> fields = Sections2(file, message).fields();
      if (!fields.ok()) return fields.status();
      messages.insert(messages.end(), fields->begin(), fields->end());
    }
    at += message.length;
  }
  return messages;
}

Result<std::vector<char>> read_head(const PosixFile& file, const Message& message) {
  if (!message.sections.empty()) {
    std::vector<char> head;
    constexpr size_t kData = 2;  // sections 6 and 7
    WEIR_TRY(take_sections(file, message, kData, &head));
    end_message2(&head);
    return head;
  }
  for (int64_t bytes = std::min<int64_t>(1024, message.length);; bytes = message.length) {
    std::vector<char> head(static_cast<size_t>(bytes));
    WEIR_TRY(file.read_at(head.data(), head.size(), message.offset));
    if (message.edition == 1 ? bytes >= 64 : sections_of(head.data(), bytes).has_value())
      return head;
    if (bytes == message.length) return unreadable_sections(file, message);
  }
}

}  // namespace weir::output::grib
