// SPDX-License-Identifier: Apache-2.0
// Which messages of a file are those of a field at a level: by parameter and level, then by the
// keys that the program asks for, by what was done over time, by member and by grid. What is left
// may differ in time alone: two messages for one time that are not of the same product are an
// error.
#include "output/format/grib/choose.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "output/model/text.h"

namespace weir::output::grib {
namespace {

double apart(double a, double b) { return std::abs(std::remainder(a - b, 360)); }

// Whether its number is of a part of the tables that each centre has for itself.
bool is_of_centre(const Identity& id) {
  constexpr int64_t kLocal1 = 128, kLocal2 = 192;
  return std::ranges::any_of(id.parameter, [&](int64_t number) {
    return number >= (id.edition == 1 ? kLocal1 : kLocal2);
  });
}

// Whether its values are in rows of the same length.
bool is_regular(const Identity& id) {
  return id.grid.size() == 4 && id.grid[1] > 0 && id.grid[2] > 0 &&
         (id.edition == 1 || id.grid[1] * id.grid[2] == id.grid[3]);
}

struct Corners {
  double north, south, west, east;
};
Corners corners(const Identity& id) {
  Corners c{id.first_lat, id.last_lat, id.first_lon, id.last_lon};
  if (id.scanning & kUpward) std::swap(c.north, c.south);
  if (id.scanning & kWestward) std::swap(c.west, c.east);
  return c;
}

bool is_same(const Corners& a, const Corners& b) {
  return apart(a.north, b.north) <= kSameDegrees && apart(a.south, b.south) <= kSameDegrees &&
         apart(a.west, b.west) <= kSameDegrees && apart(a.east, b.east) <= kSameDegrees;
}

// Where a grid begins and ends, in words.
std::string corners_of(const Identity& id) {
  return number_text(id.first_lat) + " N, " + number_text(id.first_lon) + " E to " +
         number_text(id.last_lat) + " N, " + number_text(id.last_lon) + " E (scanning mode " +
         std::to_string(id.scanning) + ")";
}

// What archives tell fields of one parameter, level and time apart by; the first that differs is
// reported. First what makes them other quantities.
constexpr const char* kQuantities[] = {
    "constituentType", "aerosolType", "percentileValue", "probabilityType",
    "scaledValueOfLowerLimit", "scaledValueOfUpperLimit", "derivedForecast", "waveDirectionNumber",
    "waveFrequencyNumber", "directionNumber", "frequencyNumber", "channel",
    "scaledValueOfFirstSize",
    "scaledValueOfSecondSize", "scaledValueOfFirstWavelength"};
constexpr const char* kTelling[] = {
    "stepType", "dataType", "stream", "class", "expver", "typeOfGeneratingProcess",
    "typeOfEnsembleForecast", "identificationNumber", "type",
    "systemNumber", "methodNumber", "iterationNumber", "hdate", "referenceDate", "startStep",
    "level", "bottomLevel", "productDefinitionTemplateNumber", "dataDate", "dataTime", "stepRange"};

}  // namespace

Result<GribReader::Wanted> GribReader::wanted_at(Encoder& encoder, size_t level) const {
  Result<const Bytes*> header = encoder.header(level);
  if (!header.ok()) return header.status();
  const Plan& plan = encoder.plan();
  Wanted wanted{identity_of(**header, plan.edition), {}, plan.parameter(), true};
  if (plan.of_parameter != 0) wanted.id.parameter.clear();
  if (plan.of_parameter != 0) wanted.parameter = plan.of_parameter;
  if (wanted.parameter == 0) wanted.parameter = encoder.parameter();
  wanted.where = plan.where;
  Identity& id = wanted.id;
  if (!id.definition.empty() && id.grid.size() == 4) {
    id.grid[3] = plan.points;
    wanted.has_scanning = plan.has_scanning;
  }
  id.columns = plan.row < plan.points ? plan.row : 0;
  // In edition 1 a number 0 may be that of a member, or of none.
  if (id.edition == 1) id.member = plan.member(level).value_or(-1);
  return wanted;
}

Result<Handle> GribReader::header_of(size_t message) const {
  Result<std::vector<char>> bytes = read_without_data(file_, messages_[message]);
  if (!bytes.ok()) return bytes.status();
  return Handle::from_bytes(*bytes);
}

// As ecCodes numbers it; 0: not known.
int64_t GribReader::parameter_of(size_t message) const {
  const Identity& id = identities_[message];
  const auto key =
      std::tuple(id.edition, id.centre, id.parameter, id.level, id.process, id.product);
  const auto known = parameters_.find(key);
  if (known != parameters_.end()) return known->second;
  Result<Handle> handle = header_of(message);
  const Result<int64_t> number = handle.ok() ? handle->whole("paramId") : Result<int64_t>(0);
  return parameters_[key] = number.ok() ? *number : 0;
}

// Whether the number that both have is another quantity in the tables of the message's centre.
bool GribReader::is_another(const Wanted& wanted, size_t message) const {
  const Identity& id = identities_[message];
  if (!is_of_centre(id) || id.centre == wanted.id.centre || wanted.parameter <= 0) return false;
  const int64_t parameter = parameter_of(message);
  return parameter > 0 && parameter != wanted.parameter;
}

// Those with its number in the tables of the edition; else those that ecCodes takes for the same
// parameter: centres have tables of their own, and numbers of their own for means.
std::vector<size_t> GribReader::of_parameter(const Wanted& wanted) const {
  std::vector<size_t> all;
  for (size_t i = 0; i < identities_.size(); i++) {
    if (identities_[i].is_of(wanted.id) && !is_another(wanted, i)) all.push_back(i);
  }
  const auto is_done_so = [&](size_t i) { return identities_[i].process == wanted.id.process; };
  if (wanted.parameter <= 0 || std::ranges::any_of(all, is_done_so)) return all;
  std::vector<size_t> others;
  for (size_t i = 0; i < identities_.size(); i++) {
    const Identity& id = identities_[i];
    if (id.edition == wanted.id.edition && id.level == wanted.id.level &&
        (all.empty() || is_done_so(i)) && parameter_of(i) == wanted.parameter)
      others.push_back(i);
  }
  return others.empty() ? all : others;
}

// Those of which ecCodes says what the program asks for.
Result<std::vector<size_t>> GribReader::with_keys(const Wanted& wanted,
                                                  std::vector<size_t> messages,
                                                  const std::string& what) const {
  std::vector<size_t> some;
  std::map<std::string, std::set<std::string>> others;
  for (const size_t message : messages) {
    Result<Handle> handle = header_of(message);
    if (!handle.ok()) return handle.status();
    bool all = true;
    for (const auto& [key, value] : wanted.where) {
      const Result<std::string> text = handle->text(key);
      const Result<int64_t> number = handle->whole(key);
      const bool is = (text.ok() && *text == value) ||
                      (number.ok() && std::to_string(*number) == value);
      if (!is) others[key].insert(text.ok() ? *text : "(no such key)");
      all = all && is;
    }
    if (all) some.push_back(message);
  }
  if (!some.empty()) return some;
  std::string has;
  for (const auto& [key, values] : others) {
    has += (has.empty() ? "" : "; ") + key + ": ";
    for (const std::string& value : values) has += (value == *values.begin() ? "" : ", ") + value;
  }
  std::string asked;
  for (const auto& [key, value] : wanted.where)
    asked += (asked.empty() ? "" : ",") + key + "=" + value;
  return Status(WEIR_E_FORMAT, what + " is in the file (" + in_words(wanted.id) +
                                   "), but not where " + asked + "; there is " + has);
}

// "percentileValue (10 and 90)"; "": in none of these keys.
std::string GribReader::differ_in(size_t a, size_t b, std::span<const char* const> keys) const {
  Result<Handle> first = header_of(a), second = header_of(b);
  if (!first.ok() || !second.ok()) return "";
  for (const char* key : keys) {
    const Result<std::string> one = first->text(key), two = second->text(key);
    if (!one.ok() || !two.ok() || *one == *two) continue;
    return std::string(key) + " (" + *one + " and " + *two + "); say which (grib = { where = \"" +
           key + "=" + *two + "\" }, or attribute GRIB_where)";
  }
  return "";
}

// At different times, too, there has to be one quantity: one percentile, one constituent, one
// centre where centres have numbers for themselves.
Status GribReader::check_quantity(size_t first, size_t message, const std::string& what) const {
  const Identity &a = identities_[first], &b = identities_[message];
  if (a.edition != b.edition) return {};
  std::string key;
  if (a.centre != b.centre && is_of_centre(a) && parameter_of(first) != parameter_of(message))
    key = differ_in(first, message, std::array{"centre"});
  else if (a.quantity != b.quantity)
    key = differ_in(first, message, kQuantities);
  if (key.empty()) return {};
  return {WEIR_E_FORMAT, what + " is in the file as several quantities (" + in_words(b) +
                             "), in the messages at bytes " +
                             std::to_string(messages_[first].offset) + " and " +
                             std::to_string(messages_[message].offset) + ", which differ in " +
                             key};
}

// For one time there may be several messages of one product (a forecast of each of several runs, a
// file twice), which are records one after the other; not of several.
Status GribReader::check_alike(const std::vector<size_t>& messages,
                               const std::string& what) const {
  std::map<std::pair<int, int64_t>, std::vector<size_t>> at;
  const Identity* first = nullptr;
  for (const size_t message : messages) {
    const Identity& id = identities_[message];
    if (first == nullptr && !id.definition.empty()) first = &id;
    if (first != nullptr && first->edition == id.edition && first->definition != id.definition) {
      return {WEIR_E_FORMAT, what + " is in the file on several grids of one kind, " +
                                 grid_in_words(id) + " in the message at byte " +
                                 std::to_string(messages_[message].offset) +
                                 "; take the messages of one grid out of it (grib_copy -w)"};
    }
    std::vector<size_t>& same = at[{id.edition, id.end_s}];
    for (const size_t other : same) {
      const Identity& beside = identities_[other];
      const bool other_interval =
          beside.reference_s == id.reference_s && beside.time_s != id.time_s;
      if (beside.product == id.product && !other_interval) continue;
      std::string key = differ_in(other, message, kQuantities);
      if (key.empty()) key = differ_in(other, message, kTelling);
      return {WEIR_E_FORMAT,
              what + " is in the file more than once for one time (" + in_words(id) +
                  "), in the messages at bytes " + std::to_string(messages_[other].offset) +
                  " and " + std::to_string(messages_[message].offset) + ", which differ in " +
                  (key.empty() ? "what the centre alone knows; take those that are meant out of "
                                 "the file (grib_copy -w)"
                               : key)};
    }
    WEIR_TRY(check_quantity(messages[0], message, what));
    if (same.empty()) same.push_back(message);
  }
  return {};
}

namespace {

// What was done over time as code table 4.10 has it; 2 of edition 1 is a minimum, too.
int process_of(const Identity& id) {
  if (id.edition == 2) return id.process;
  switch (id.process) {
    case 3: return 0;
    case 4: return 1;
    case 5: return 4;
    default: return id.process;
  }
}

bool is_same_process(const Identity& a, const Identity& b) {
  const int one = process_of(a), two = process_of(b);
  const bool extremes = a.edition != b.edition && (one == 2 || one == 3) && (two == 2 || two == 3);
  return one == two || extremes;
}

}  // namespace

// Why two messages are not of one record; "": they may be.
std::string GribReader::not_together(const Known& known, size_t a, size_t b) const {
  const Identity &one = identities_[a], &two = identities_[b];
  if (!is_same_process(one, two))
    return "which are not of one operation over time (stepType); name it by where, or take one of "
           "them out of the file (grib_copy -w)";
  if (known.of_any_member && one.member != two.member)
    return "which are of members " + std::to_string(one.member) + " and " +
           std::to_string(two.member) + " (-1: of none); name one (GRIB_perturbationNumber)";
  if (one.edition == two.edition && one.definition != two.definition)
    return "which are on several grids of one kind; take those of one grid out of it "
           "(grib_copy -w)";
  return "";
}

// The times for which a level has several messages.
std::set<int64_t> GribReader::repeated_times(const std::vector<size_t>& messages) const {
  std::set<int64_t> all, repeated;
  for (const size_t message : messages) {
    const int64_t time = identities_[message].end_s;
    if (!all.insert(time).second) repeated.insert(time);
  }
  return repeated;
}

// A record has all levels of a time; all records have one operation and one grid.
Status GribReader::check_times(const Known& known, const std::string& what) const {
  const auto wrong = [&](size_t record, size_t first, size_t here, const std::string& why) {
    return Status(WEIR_E_FORMAT,
                  what + " has its levels in another order of times: record " +
                      std::to_string(record) + " would have the messages at bytes " +
                      std::to_string(messages_[first].offset) + " and " +
                      std::to_string(messages_[here].offset) + " (" + in_words(identities_[here]) +
                      "), " + why);
  };
  const size_t records = known.found.over_time ? known.levels[0].size() : 1;
  const std::set<int64_t> repeated = repeated_times(known.levels[0]);
  const size_t first = known.levels[0][0];
  for (const std::vector<size_t>& level : known.levels) {
    for (size_t record = 0; record < records; record++) {
      const size_t here = level[record], beside = known.levels[0][record];
      if (const std::string why = not_together(known, first, here); !why.empty()) {
        return {WEIR_E_FORMAT, what + " is in the file in the messages at bytes " +
                                   std::to_string(messages_[first].offset) + " and " +
                                   std::to_string(messages_[here].offset) + " (" +
                                   in_words(identities_[here]) + "), " + why};
      }
      if (!known.found.over_time) continue;
      const Identity &a = identities_[beside], &b = identities_[here];
      if (a.end_s != b.end_s)
        return wrong(record, beside, here,
                     "which are of different times; sort the file by time (grib_copy -B)");
      if (a.reference_s != b.reference_s && repeated.contains(a.end_s))
        return wrong(record, beside, here,
                     "which are of runs that began at different times, both with that time; sort "
                     "the file (grib_copy -B \"dataDate,dataTime\"), or name a run by where "
                     "(dataDate=20250101)");
    }
  }
  return {};
}

Result<std::vector<size_t>> GribReader::messages_of(const Wanted& wanted,
                                                    const std::string& what) const {
  std::vector<size_t> all = of_parameter(wanted);
  if (all.empty()) {
    const std::string number =
        wanted.id.parameter.empty() ? "paramId " + std::to_string(wanted.parameter) + ", " : "";
    std::string other;
    for (size_t i = 0; i < identities_.size() && other.empty(); i++) {
      if (!identities_[i].is_of(wanted.id)) continue;
      other = "; the number is there, but of centre " + std::to_string(identities_[i].centre) +
              ", where it is paramId " + std::to_string(parameter_of(i));
    }
    return Status(WEIR_E_FORMAT, what + " is not in the file (" + number + in_words(wanted.id) +
                                     ")" + other);
  }
  if (!wanted.where.empty()) {
    Result<std::vector<size_t>> some = with_keys(wanted, std::move(all), what);
    if (!some.ok()) return some;
    all = std::move(*some);
  }
  std::vector<size_t> exact;
  std::set<int> processes;
  for (const size_t i : all) {
    processes.insert(identities_[i].process);
    if (identities_[i].process == wanted.id.process) exact.push_back(i);
  }
  if (!exact.empty()) return of_member(wanted.id, std::move(exact), what);
  if (processes.size() > 1) {
    return Status(WEIR_E_FORMAT, what + " is in the file as several of mean, sum, minimum and "
                                        "maximum, but not as a value of one moment; say which "
                                        "(grib = { where = \"stepType=avg\" }; accum, min, max)");
  }
  return of_member(wanted.id, std::move(all), what);
}

// A field that names no member is that of a file with one.
Result<std::vector<size_t>> GribReader::of_member(const Identity& wanted,
                                                  std::vector<size_t> messages,
                                                  const std::string& what) const {
  std::set<int64_t> members;
  for (const size_t message : messages) members.insert(identities_[message].member);
  if (!members.contains(wanted.member)) {
    if (wanted.edition == 1 && wanted.member == 0 && members.contains(-1)) {
      Identity none = wanted;  // 0 is the number of what is of no ensemble, too
      none.member = -1;
      return of_member(none, std::move(messages), what);
    }
    if (wanted.member < 0 && members.size() == 1) return messages;
    std::string text;
    for (const int64_t member : members) {
      if (member < 0) continue;
      text += (text.empty() ? "" : ", ") + std::to_string(member);
    }
    const std::string has = text.empty() ? "no member of an ensemble"
                                         : "members " + text + " of an ensemble";
    const std::string cure = wanted.member < 0
        ? "; name one (grib = { perturbationNumber = " + std::to_string(*members.rbegin()) +
              " }, or attribute GRIB_perturbationNumber), or give the field an axis of members "
              "(attribute GRIB_key = \"perturbationNumber\")"
        : "";
    const std::string not_as =
        wanted.member < 0 ? "" : ", not as member " + std::to_string(wanted.member);
    return Status(WEIR_E_FORMAT, what + " is in the file as " + has + not_as + " (" +
                                     in_words(wanted) + ")" + cure);
  }
  std::erase_if(messages, [&](size_t message) {
    return identities_[message].member != wanted.member;
  });
  return messages;
}

Status GribReader::check_grid(const Identity& wanted, size_t message,
                              const std::string& what) const {
  const Identity& has = identities_[message];
  const std::string cure = "; declare the grid of the file, or bring the file to the field's "
                           "first (cdo remapbil)";
  const bool other_rows = has.columns > 0 && wanted.columns > 0 && has.columns != wanted.columns;
  const bool same = other_rows                ? false
                    : has.definition.empty() || wanted.definition.empty()
                        ? has.grid == wanted.grid
                        : has.grid[0] == wanted.grid[0] &&  // else the decoder counts the points
                              (has.grid[3] == 0 || has.grid[3] == wanted.grid[3]);
  if (!same) {
    return {WEIR_E_FORMAT, what + " is on another grid, " + grid_in_words(has) +
                               ", than the field, which is on " +
                               grid_in_words(wanted) + cure};
  }
  if (!has.definition.empty()) return {};
  if ((has.scanning != wanted.scanning && !is_regular(has)) ||
      !is_same(corners(has), corners(wanted))) {
    return {WEIR_E_FORMAT, what + " is on a grid from " + corners_of(has) +
                               ", the field's is from " + corners_of(wanted) + cure};
  }
  return {};
}

// Those of the messages that are on the field's grid. A file may have a field on several grids,
// each at every time; a time for which it is on others alone is none to be left out.
Result<std::vector<size_t>> GribReader::on_grid(const Identity& wanted,
                                                std::vector<size_t> messages,
                                                const std::string& what) const {
  std::vector<size_t> others;
  std::set<int64_t> times;
  Status wrong;
  std::erase_if(messages, [&](size_t message) {
    const Status status = check_grid(wanted, message, what);
    if (status.ok()) {
      times.insert(identities_[message].time_s);
    } else {
      others.push_back(message);
      if (wrong.ok()) wrong = status;
    }
    return !status.ok();
  });
  const auto alone = std::ranges::find_if(
      others, [&](size_t message) { return !times.contains(identities_[message].time_s); });
  if (alone == others.end()) return messages;
  if (messages.empty()) return wrong;
  return Status(WEIR_E_FORMAT, what + " is on the grid of the field in " +
                                   std::to_string(messages.size()) +
                                   " messages, and at another time, in the message at byte " +
                                   std::to_string(messages_[*alone].offset) +
                                   ", on another one alone: " +
                                   grid_in_words(identities_[*alone]) +
                                   "; take the messages of one grid out of it (grib_copy -w)");
}

}  // namespace weir::output::grib
