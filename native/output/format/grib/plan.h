// SPDX-License-Identifier: Apache-2.0
// From the description of a variable to the messages that it is in a file of GRIB: one for each
// level (or member, ...) and record, and the keys of ecCodes that its header has. Keys that the
// configuration or the program gives (attributes GRIB_<key>) go before those that are derived from
// CF's attributes. Nothing here needs ecCodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "output/core/status.h"
#include "output/format/format.h"

namespace weir::output::grib {

enum class Packing { kSimple, kCcsds, kOther };

struct Plan {
  std::string field;
  int edition = 2;
  int64_t points = 0;  // of a message
  Type type = WEIR_FLOAT32;
  std::optional<double> missing;
  std::vector<int64_t> lengths;  // of a record, slowest first; the horizontal ones last
  std::string sample = "GRIB";  // of ecCodes, with the edition behind it: what a message begins as
  // In the order in which ecCodes wants them.
  FormatKeys header;
  // What says which quantity it is, tried in turn; empty: the header says it.
  FormatKeys parameters;
  std::string standard_name;  // what the parameter must agree with; "" if not known
  std::string usual_name;     // what the name means in CMIP, where ecCodes has another meaning
  std::string units;          // of the values; "": not known
  FormatKeys rest;            // after the parameter
  std::vector<FormatKeys> levels;  // by message
  FormatKeys packing;              // last
  Packing packs = Packing::kSimple;
  int bits = 16;
  double information = 0;  // not 0: each message has the bits that hold this share of it
  int64_t row = 0;         // points that follow each other as neighbours
  std::string named_grid;  // "N80": the points of its rows are ecCodes' to say
  bool of_minimum = false;  // in edition 1, where the parameter alone can say so
  bool from_start = false;  // times are steps from the reference of the run
  bool over_time = true;
  // For reading: nothing is encoded.
  bool header_only = false;
  int64_t of_parameter = 0;  // not 0: one that ecCodes does not set, and that messages have
  std::vector<std::pair<std::string, std::string>> where;  // which messages are read
  bool has_scanning = false;  // the order of rows is given by keys

  // That is given by its number in ecCodes; 0: none.
  int64_t parameter() const;
  // Of an ensemble, that the keys of a level say.
  std::optional<int64_t> member(size_t level) const;
  size_t messages() const { return levels.size(); }
};

// fails: WEIR_E_FORMAT, WEIR_E_ARGUMENT what GRIB does not have, with the place of a key that is
// wrong.
Result<Plan> plan_of(const FileDescription& description, int variable, int edition);

// Whether the variable is one of messages: coordinates and time are part of their headers.
// Longitudes and latitudes of points are messages where the fields' grids do not say them; edition
// 1 has no parameters for them, and no grid that needs them.
bool is_field(const FileDescription& description, int variable, int edition);

}  // namespace weir::output::grib
