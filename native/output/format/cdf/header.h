// SPDX-License-Identifier: Apache-2.0
// Where the data of a classic netCDF file (CDF-1, CDF-2, CDF-5) lie: its header, read. The library
// writes the header; owners then write data at these places, which netCDF-C does not return
// (docs/decisions/0028). Format: "NetCDF Classic Format Specification" of Unidata, appendix B of
// the netCDF user's guide, and PnetCDF's CDF-5.
//
// All numbers are big-endian. Fixed variables come first, each at its `begin`; after them the
// records: record r of a variable with time lies at begin + r * record_bytes. A variable's share of
// a record is padded to 4 bytes, unless it is the only one with time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "output/core/status.h"
#include "output/core/types.h"

namespace weir::output::cdf {

struct Variable {
  std::string name;
  Type type = WEIR_FLOAT32;
  bool over_time = false;
  int64_t begin = 0;  // byte of its first element
  int64_t bytes = 0;  // of one record, without padding
};

struct Header {
  int version = 0;           // 1, 2, 5
  int64_t records = 0;
  int64_t record_bytes = 0;  // of all variables with time
  int64_t records_begin = 0; // byte of the first record
  bool padded = false;       // a variable's share of a record is shorter than its place
  int64_t end = 0;           // byte after the header
  std::vector<Variable> variables;
};

// Offset and size of the number of records in the file.
constexpr int64_t kRecordsOffset = 4;
constexpr size_t records_bytes(int version) { return version == 5 ? 8 : 4; }

// fails: WEIR_E_FORMAT, with what is wrong; a header that ends too early says "incomplete", more
// bytes may mend it.
Result<Header> parse_header(std::span<const char> bytes);
// Whether the file has all that its header says; also one of a program that has types which weir
// has not. A file that is none of this format is fine.
// fails: WEIR_E_FORMAT it is truncated
Status check_size(const std::string& path);
// Reads as much of the file as its header needs.
Result<std::vector<char>> read_header(const std::string& path);

}  // namespace weir::output::cdf
