// SPDX-License-Identifier: Apache-2.0
// A record taken out of the mapping once, and its fields.
#pragma once

#include <cstring>

#include "wire/format.h"

namespace weir::reader {

// Of operations whose records tell of a part of another record's call: the other file of a copy, a
// request of a list. They have kBelow as what Fortran's library does has.
constexpr bool is_part(wire::Op op) {
  using wire::Op;
  return op == Op::kSendfileIn || op == Op::kCopyFileRangeIn || op == Op::kSpliceIn ||
         op == Op::kLioRead || op == Op::kLioWrite || op == Op::kAioRead || op == Op::kAioWrite;
}

struct Words {
  uint64_t w0, w1, w2, w3;

  // Word by word: each goes to a register, where a copy of the whole would go over the stack.
  static Words load(const char* from) {
    return {word(from), word(from + 8), word(from + 16), word(from + 24)};
  }

  static uint64_t word(const char* from) {
    uint64_t value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }

  uint64_t start() const { return w0; }
  uint32_t file() const { return uint32_t(w1 >> 32); }
  uint8_t op() const { return uint8_t(w3 >> 32); }
  uint8_t layer() const { return uint8_t(w3 >> 40); }
  uint8_t flags() const { return uint8_t(w3 >> 48); }
  bool has_failed() const { return (flags() & wire::kError) != 0; }
  bool is_nested() const { return (flags() & wire::kNested) != 0; }
  // Its time is its thread's time in I/O, and that of no other record. A statement of Fortran
  // leaves it to the calls that the library makes for it: what the library does itself is no I/O.
  bool has_own_time() const {
    return layer() != uint8_t(wire::Layer::fortran) &&
           (!is_nested() || ((flags() & wire::kBelow) != 0 && !is_part(wire::Op(op()))));
  }
  // Of the lowest level seen, at which bytes move.
  bool is_lowest() const {
    return layer() == uint8_t(wire::Layer::posix) || layer() == uint8_t(wire::Layer::stdio);
  }
  uint64_t offset() const { return w2 & wire::kUnknownOffset; }
  // Of a failed call 40 bits: above them is its checksum.
  uint64_t size() const { return (w2 >> 48 & (has_failed() ? 0xff : 0xffff)) << 32 | uint32_t(w3); }
  uint8_t error() const { return has_failed() ? uint8_t(w3 >> 56) : uint8_t{0}; }
  uint64_t duration() const {
    return uint64_t(uint32_t(w1)) << ((flags() & wire::kLong) != 0 ? wire::kLongShift : 0);
  }
  uint64_t end() const { return start() + duration(); }
  int64_t unit() const { return int64_t(w2 << 16) >> 16; }  // a Fortran record's offset
};
static_assert(sizeof(Words) == sizeof(wire::Record));

// Times further than this from the file's making are damage, and would not fit the arithmetic of
// clock.h: at 3 GHz, 1.5 years.
inline constexpr uint64_t kTimeReach = uint64_t{1} << 57;

}  // namespace weir::reader
