// SPDX-License-Identifier: Apache-2.0
#include "hook/names.h"


#include "hook/object.h"

namespace weir::hook {
namespace {

constexpr char kText[] =
#define WEIR_HOOKED(symbol, library, result) #symbol "\0"
#include "hook/table.def"
#undef WEIR_HOOKED
    ;

struct Row {
  uint32_t name;  // where in kText
  Library library;
  Result result;
};

struct Rows {
  Row at[kSlots];
};

constexpr Rows kRows = [] {
  Rows rows{{
#define WEIR_HOOKED(symbol, library, result) {0, Library::library, Result::result},
#include "hook/table.def"
#undef WEIR_HOOKED
  }};
  uint32_t at = 0;
  for (Row& row : rows.at) {
    row.name = at;
    while (kText[at] != 0) ++at;
    ++at;
  }
  return rows;
}();

// Open addressing; an empty place has kSlots.
constexpr uint32_t kPlaces = 8192;
static_assert(kSlots < kPlaces / 2);
struct Index {
  uint16_t at[kPlaces];
};

constexpr Index kIndex = [] {
  Index index{};
  for (uint16_t& place : index.at) place = kSlots;
  for (uint16_t slot = 0; slot < kSlots; ++slot) {
    uint32_t place = gnu_hash_of(kText + kRows.at[slot].name) % kPlaces;
    while (index.at[place] != kSlots) place = (place + 1) % kPlaces;
    index.at[place] = slot;
  }
  return index;
}();

// A bit for each pair of first letters that a function of an optional library has.
constexpr uint32_t pair_of(const char* name) {
  return (static_cast<unsigned char>(name[0]) * 31u + static_cast<unsigned char>(name[1])) % 64;
}
constexpr uint64_t kPairs = [] {
  uint64_t pairs = 0;
  for (const Row& row : kRows.at) {
    if (row.library != Library::c) pairs |= uint64_t{1} << pair_of(kText + row.name);
  }
  return pairs;
}();

struct OptionalLibrary {
  const char *file, *own;
};

OptionalLibrary about(Library library) {
  switch (library) {
#define WEIR_LIBRARY(name, file, own) \
  case Library::name: return {file, own};
#include "hook/libraries.def"
#undef WEIR_LIBRARY
    case Library::c: break;
  }
  return {"libc.so", "exit"};
}

}  // namespace

const char* name_of(Slot slot) { return kText + kRows.at[slot].name; }
Library library_of(Slot slot) { return kRows.at[slot].library; }
Result result_of(Slot slot) { return kRows.at[slot].result; }

Slot slot_of(const char* name) {
  for (uint32_t place = gnu_hash_of(name) % kPlaces;; place = (place + 1) % kPlaces) {
    const uint16_t slot = kIndex.at[place];
    if (slot == kSlots || is_same(name, kText + kRows.at[slot].name)) return static_cast<Slot>(slot);
  }
}

Slot optional_slot_of(const char* name) {
  if (name[0] == 0 || (kPairs >> pair_of(name) & 1) == 0) return kSlots;
  const Slot slot = slot_of(name);
  return slot != kSlots && is_optional(slot) ? slot : kSlots;
}

const char* file_of(Library library) { return about(library).file; }
const char* own_function_of(Library library) { return about(library).own; }

}  // namespace weir::hook
