// SPDX-License-Identifier: Apache-2.0
#include "output/format/intact.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace weir::output {
namespace {

std::string in_hexadecimal(std::string_view bytes) {  // a magic number
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += text.empty() ? "" : " ";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

Result<std::string> read_all(const PosixFile& file) {
  Result<int64_t> bytes = file.size();
  if (!bytes.ok()) return bytes.status();
  std::string text(static_cast<size_t>(*bytes), ' ');
  WEIR_TRY(file.read_at(text.data(), text.size(), 0));
  return text;
}

Result<PosixFile> open_written(const std::string& path) {
  Result<PosixFile> file = PosixFile::open(path, O_RDONLY);
  std::error_code error;
  if (file.ok() || std::filesystem::exists(path, error)) return file;
  return Status(WEIR_E_FILE, path + ", which was written, has gone (" + std::strerror(ENOENT) +
                                 "): another program has removed or renamed it or its directory");
}

Status not_intact(const std::string& path, const std::string& found, const std::string& expected) {
  return {WEIR_E_FILE, path + " is not what was written: it has " + found + ", expected " +
                           expected + "; another program has truncated or replaced it. It keeps "
                           "this name"};
}

Status expect_bytes(const PosixFile& file, int64_t offset, std::string_view expected) {
  std::string found(expected.size(), '\0');
  const std::string where = " at byte " + std::to_string(offset);
  WEIR_TRY(expect_length(file, offset + static_cast<int64_t>(expected.size())));
  WEIR_TRY(file.read_at(found.data(), found.size(), offset));
  if (found == expected) return {};
  return not_intact(file.path(), in_hexadecimal(found) + where, in_hexadecimal(expected));
}

Status expect_length(const PosixFile& file, int64_t least_bytes) {
  Result<int64_t> size = file.size();
  if (!size.ok()) return size.status();
  if (*size >= least_bytes) return {};
  return not_intact(file.path(), std::to_string(*size) + " bytes", std::to_string(least_bytes));
}

}  // namespace weir::output
