// SPDX-License-Identifier: Apache-2.0
// Names under the rules, and what calls on them do (names.cc, attributes.cc).
#pragma once

#include "base/scratch.h"
#include "layers/pack/pack.h"

namespace weir::layers::pack {

// A name that is packed, or open and not yet closed. Busy is held.
struct FoundName {
  Container* container = nullptr;
  Name* name = nullptr;
  Version version{};
  bool there() const { return version.state == kPacked || version.state == kOpened; }
};

FoundName find(const Place& p);

// The place of a path, with room for it.
struct PlaceOf {
  explicit PlaceOf(const stack::GivenPath& path) {
    if (!stack::find_place(path, kNames, room.data(), &place)) place.spec = nullptr;
  }
  const base::Scratch room;
  Place place{};
};

inline FoundName find(const stack::GivenPath& path) { return find(PlaceOf(path).place); }

Result stat(const stack::GivenPath& path, struct stat* to);
Result stat_any(const stack::GivenPath& path, struct stat* to);
Result access(const stack::GivenPath& path, int mode);
Result change(const stack::GivenPath& path, const stack::Change& change);
Result truncate(const stack::GivenPath& path, uint64_t bytes);
Result stat_open(Layer& l, struct stat* to);
Result change_open(Layer& l, const stack::Change& change);

}  // namespace weir::layers::pack
