// SPDX-License-Identifier: Apache-2.0
// One variable of a file on its way to the ranks (get.cc): who reads which slab, and what it is in
// the file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "output/engine/places.h"
#include "output/engine/session.h"
#include "output/format/reader.h"
#include "output/plan/pieces.h"
#include "output/plan/share.h"

namespace weir::output {

// What leaders have to know of the variable.
struct Wanted {
  int64_t record = 0;
  Type type = WEIR_FLOAT64;  // of the file's values, where that has unsigned ones the next larger
  bool is_unsigned = false;  // in the file
  std::optional<Packing> packing;
  Fills fills;
  std::vector<PlaceVariable> places = {};
};

struct Session::Getting {
  int index = -1;  // of the field in the catalogue
  const Field& field;
  ColumnShape shape = {};
  Pieces mine = {};
  std::vector<int> leaders = {};
  int leader = -1;  // this rank's number among them
  std::vector<std::vector<Part>> slabs = {};
  std::vector<Pieces> of_rank = {};  // on leaders
  std::shared_ptr<Reader> reader = nullptr;
  Wanted wanted = {};
};

}  // namespace weir::output
