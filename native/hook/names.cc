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
  bool may_be_missing;
};

constexpr bool is_newer(const char* name) {
  constexpr const char* kNewer[] = {
#define WEIR_NEWER(symbol) #symbol,
#include "hook/newer.def"
#undef WEIR_NEWER
  };
  for (const char* newer : kNewer) {
    if (is_same(name, newer)) return true;
  }
  return false;
}

struct Rows {
  Row at[kSlots];
};

constexpr Rows kRows = [] {
  Rows rows{{
#define WEIR_HOOKED(symbol, library, result) {0, Library::library, Result::result, false},
#include "hook/table.def"
#undef WEIR_HOOKED
  }};
  uint32_t at = 0;
  for (Row& row : rows.at) {
    row.name = at;
    row.may_be_missing = row.library != Library::c || is_newer(kText + at);
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

// A bit for each pair of first letters of a function that may be missing.
constexpr uint32_t pair_of(const char* name) {
  return (static_cast<unsigned char>(name[0]) * 31u + static_cast<unsigned char>(name[1])) % 64;
}
constexpr uint64_t kPairs = [] {
  uint64_t pairs = 0;
  for (const Row& row : kRows.at) {
    if (row.may_be_missing) pairs |= uint64_t{1} << pair_of(kText + row.name);
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
#include "hook/library/libraries.def"
#undef WEIR_LIBRARY
    case Library::c: break;
  }
  return {"libc.so", "exit"};
}

}  // namespace

const char* name_of(Slot slot) { return kText + kRows.at[slot].name; }
Library library_of(Slot slot) { return kRows.at[slot].library; }
bool may_be_missing(Slot slot) { return kRows.at[slot].may_be_missing; }
Result result_of(Slot slot) { return kRows.at[slot].result; }

Slot slot_of(const char* name) {
  for (uint32_t place = gnu_hash_of(name) % kPlaces;; place = (place + 1) % kPlaces) {
    const uint16_t slot = kIndex.at[place];
    if (slot == kSlots || is_same(name, kText + kRows.at[slot].name))
      return static_cast<Slot>(slot);
  }
}

Slot missable_slot_of(const char* name) {
  if (name[0] == 0 || (kPairs >> pair_of(name) & 1) == 0) return kSlots;
  const Slot slot = slot_of(name);
  return slot != kSlots && may_be_missing(slot) ? slot : kSlots;
}

const char* file_of(Library library) { return about(library).file; }
const char* own_function_of(Library library) { return about(library).own; }

}  // namespace weir::hook
