// SPDX-License-Identifier: Apache-2.0
#include "output/format/cdf/header.h"

#include <fcntl.h>

#include <algorithm>
#include <string_view>

#include "output/format/posix_file.h"

namespace weir::output::cdf {
namespace {

constexpr uint32_t kDimensionTag = 0x0A, kVariableTag = 0x0B, kAttributeTag = 0x0C;
constexpr int64_t kMostHeaderBytes = int64_t{1} << 30;
const char* const kIncomplete = "incomplete header";

struct FileType {
  int64_t bytes;
  int type;  // a weir_type, or -1: none, weir does not write it
};

FileType file_type(uint32_t code) {
  switch (code) {
    case 1: return {1, WEIR_INT8};
    case 3: return {2, WEIR_INT16};
    case 4: return {4, WEIR_INT32};
    case 5: return {4, WEIR_FLOAT32};
    case 6: return {8, WEIR_FLOAT64};
    case 10: return {8, WEIR_INT64};
    case 2:
    case 7: return {1, -1};
    case 8: return {2, -1};
    case 9: return {4, -1};
    case 11: return {8, -1};
  }
  return {0, -1};
}

class Parser {
 public:
  Parser(std::span<const char> bytes, bool any_type) : bytes_(bytes), any_type_(any_type) {}

  Result<Header> parse() {
    if (bytes_.size() < 4) return failed(kIncomplete);
    if (bytes_[0] != 'C' || bytes_[1] != 'D' || bytes_[2] != 'F')
      return failed("not a classic netCDF file");
    header_.version = bytes_[3];
    if (header_.version != 1 && header_.version != 2 && header_.version != 5)
      return failed("unknown version of classic netCDF");
    at_ = 4;
    header_.records = count();
    dimensions();
    attributes();
    variables();
    if (why_) return failed(why_);
    header_.end = static_cast<int64_t>(at_);
    finish();
    return std::move(header_);
  }

 private:
  static Status failed(const char* why) { return {WEIR_E_FORMAT, why}; }

  uint64_t number(size_t bytes) {
    if (why_ || bytes_.size() - at_ < bytes) {
      if (!why_) why_ = kIncomplete;
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
      value = value << 8 | static_cast<unsigned char>(bytes_[at_ + i]);
    at_ += bytes;
    return value;
  }
  int64_t count() {
    const uint64_t n = number(records_bytes(header_.version));
    if (n > uint64_t{1} << 62) why_ = why_ ? why_ : "a count is negative or too large";
    return why_ ? 0 : static_cast<int64_t>(n);
  }
  void skip(int64_t bytes) {
    const int64_t padded = (bytes + 3) & ~int64_t{3};
    if (padded > static_cast<int64_t>(bytes_.size() - at_)) why_ = why_ ? why_ : kIncomplete;
    if (!why_) at_ += static_cast<size_t>(padded);
  }
  std::string name() {
    const int64_t n = count();
    const size_t from = at_;
    skip(n);
    return why_ ? std::string() : std::string(bytes_.data() + from, static_cast<size_t>(n));
  }
  // Number of entries of a list; absent lists have two zeros.
  int64_t list(uint32_t tag) {
    const uint64_t found = number(4);
    const int64_t n = count();
    if (!why_ && found != tag && (found != 0 || n != 0)) why_ = "a list has the wrong tag";
    return why_ ? 0 : n;
  }
  void dimensions() {
    for (int64_t i = list(kDimensionTag); i > 0 && !why_; i--) {
      name();
      lengths_.push_back(count());
    }
  }
  void attributes() {
    for (int64_t i = list(kAttributeTag); i > 0 && !why_; i--) {
      name();
      const FileType type = file_type(static_cast<uint32_t>(number(4)));
      const int64_t n = count();
      if (!why_ && (type.bytes == 0 || n > kMostHeaderBytes))
        why_ = "an attribute has an unknown type or is too long";
      skip(n * type.bytes);
    }
  }
  void variables() {
    for (int64_t i = list(kVariableTag); i > 0 && !why_; i--)
      header_.variables.push_back(variable());
  }
  Variable variable() {
    Variable v;
    v.name = name();
    int64_t elements = 1;
    for (int64_t rank = count(), d = 0; d < rank && !why_; d++) {
      const int64_t dimension = count();
      if (why_ || dimension >= static_cast<int64_t>(lengths_.size())) {
        why_ = why_ ? why_ : "a variable has an unknown dimension";
        break;
      }
      const int64_t length = lengths_[static_cast<size_t>(dimension)];
      if (d == 0 && length == 0) {
        v.over_time = true;
        continue;
      }
      if (__builtin_mul_overflow(elements, length, &elements)) why_ = "a variable is too large";
    }
    attributes();
    const FileType type = file_type(static_cast<uint32_t>(number(4)));
    v.type = static_cast<Type>(type.type);
    const bool is_known = type.type >= 0 || (any_type_ && type.bytes > 0);
    if (!why_ && (!is_known || __builtin_mul_overflow(elements, type.bytes, &v.bytes)))
      why_ = "a variable's type or size is wrong";
    number(records_bytes(
        header_.version));  // vsize: redundant, and wrong by design for large variables
    v.begin = static_cast<int64_t>(number(header_.version == 1 ? 4 : 8));
    return v;
  }
  void finish() {
    int64_t with_time = 0, sum = 0, alone = 0;
    for (const Variable& v : header_.variables) {
      if (!v.over_time) continue;
      if (with_time++ == 0 || v.begin < header_.records_begin) header_.records_begin = v.begin;
      if (v.bytes % 4 != 0) header_.padded = true;
      alone = v.bytes;
      sum += (v.bytes + 3) & ~int64_t{3};
    }
    header_.record_bytes = with_time == 1 ? alone : sum;
    if (with_time == 1) header_.padded = false;
  }

  const std::span<const char> bytes_;
  const bool any_type_;
  size_t at_ = 0;
  const char* why_ = nullptr;
  Header header_;
  std::vector<int64_t> lengths_;
};

// A header, and the bytes of the file that it is.
struct Head {
  Header header;
  std::vector<char> bytes;
};

Result<Head> read_head(const PosixFile& file, int64_t size, bool any_type) {
  for (int64_t want = 64 << 10;; want *= 4) {
    std::vector<char> bytes(static_cast<size_t>(std::min(want, size)));
    WEIR_TRY(file.read_at(bytes.data(), bytes.size(), 0));
    Result<Header> header = Parser(bytes, any_type).parse();
    if (header.ok()) {
      bytes.resize(static_cast<size_t>(header->end));
      return Head{std::move(*header), std::move(bytes)};
    }
    if (header.status().message() != kIncomplete || want >= size || want > kMostHeaderBytes)
      return Status(WEIR_E_FORMAT, file.path() + ": " + header.status().message());
  }
}

// The byte behind the last element that the header promises; what pads it may be missing.
int64_t end_of_data(const Header& header) {
  int64_t end = header.end;
  for (const Variable& v : header.variables) {
    if (v.over_time && header.records == 0) continue;
    int64_t before = 0, last = 0;
    if (v.over_time && (__builtin_mul_overflow(header.records - 1, header.record_bytes, &before)))
      return INT64_MAX;
    if (__builtin_add_overflow(v.begin, before, &last) ||
        __builtin_add_overflow(last, v.bytes, &last))
      return INT64_MAX;
    end = std::max(end, last);
  }
  return end;
}

}  // namespace

Result<Header> parse_header(std::span<const char> bytes) { return Parser(bytes, false).parse(); }

Result<std::vector<char>> read_header(const std::string& path) {
  Result<PosixFile> file = PosixFile::open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  Result<int64_t> size = file->size();
  if (!size.ok()) return size.status();
  Result<Head> head = read_head(*file, *size, false);
  if (!head.ok()) return head.status();
  return std::move(head->bytes);
}

Status check_size(const std::string& path) {
  Result<PosixFile> file = PosixFile::open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  Result<int64_t> size = file->size();
  if (!size.ok()) return size.status();
  char magic[3] = {};
  if (*size < 4 || !file->read_at(magic, sizeof magic, 0).ok() ||
      std::string_view(magic, sizeof magic) != "CDF")
    return {};
  const Result<Head> head = read_head(*file, *size, true);
  const bool is_cut = !head.ok() && head.status().message() == path + ": " + kIncomplete;
  if (!head.ok() && !is_cut) return head.status();
  const int64_t end = is_cut ? INT64_MAX : end_of_data((*head).header);
  if (end <= *size) return {};
  return {WEIR_E_FORMAT,
          path + " is truncated: it has " + std::to_string(*size) + " bytes, " +
              (end == INT64_MAX ? "which is not even all of its header"
                                : "its header says " + std::to_string(end)) +
              "; copy it again, or take what is whole out of it (ncks -d time,0,N)"};
}

}  // namespace weir::output::cdf
