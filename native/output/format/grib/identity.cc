// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>

#include "output/format/grib/bytes.h"
#include "output/format/grib/products.h"
#include "output/format/grib/reader.h"

namespace weir::output::grib {
namespace {

constexpr int64_t kNone32 = 0xffffffff;
// Templates of section 3, types of grids.
constexpr int64_t kHarmonics = 50, kLastHarmonics = 53;
// Columns of a reduced grid, by edition.
constexpr int64_t kRowsOfTheirOwn[] = {0, 0xffff, kNone32};

int64_t at(std::span<const char> bytes, int64_t offset, int count) {
  return offset + count <= static_cast<int64_t>(bytes.size())
             ? static_cast<int64_t>(take_number(bytes.data() + offset, count))
             : 0;
}

// Units of a step (code table 4.4; of edition 1: 4) in seconds: months and years are mean ones.
int64_t unit_s(int64_t unit) {
  switch (unit) {
    case 0: return 60;
    case 1: return 3600;
    case 2: return 86400;
    case 3: return 31556952 / 12;
    case 4: return 31556952;
    case 10: return 3 * 3600;
    case 11: return 6 * 3600;
    case 12: return 12 * 3600;
    default: return 1;
  }
}

int64_t unit1_s(int64_t unit) {
  constexpr int64_t kQuarterHour = 13, kHalfHour = 14;
  return unit == kQuarterHour ? 900 : unit == kHalfHour ? 1800 : unit_s(unit);
}

// From octets of month, day, hour and minute.
int64_t time_of(std::span<const char> head, int64_t year, int64_t offset) {
  const auto number = [&](int64_t i) { return static_cast<unsigned>(at(head, offset + i, 1)); };
  const std::chrono::year_month_day day{std::chrono::year(static_cast<int>(year)),
                                        std::chrono::month(number(0)),
                                        std::chrono::day(number(1))};
  const int64_t days = std::chrono::sys_days(day).time_since_epoch().count();
  return days * 86400 + number(2) * 3600 + number(3) * 60;
}

// Surfaces that have no value (code tables 4.5 and 3: the ground, the top of the atmosphere, mean
// sea level, base and top of cumulonimbus); writers give them 0, none, 1, or what was there before.
// Those of centres may have one.
bool has_value2(int64_t type) { return type > 12 && type != 101; }
bool is_local2(int64_t type) { return type >= 192; }
// In edition 1 those of centres with a value: pressure in Pa (210, ECMWF), isotherms and layers of
// the ocean (235 to 238), members of a sequence (241, NCEP).
bool has_value1(int64_t type) {
  if (type >= 200) return type == 210 || (type >= 235 && type <= 238) || type == 241;
  return type > 9 && type != 102;
}

void add_surface(std::span<const char> head, int64_t offset, std::vector<double>* to) {
  const int64_t type = at(head, offset, 1), factor = at(head, offset + 1, 1),
                value = at(head, offset + 2, 4);
  if (type == 255) return;
  to->push_back(static_cast<double>(type));
  if (factor == 255 || value == kNone32 || !has_value2(type)) return;
  if (value == 0 && is_local2(type)) return;
  const double scaled = static_cast<double>(take_signed(head.data() + offset + 2, 4)) *
                        std::pow(10.0, static_cast<double>(
                                           -take_signed(head.data() + offset + 1, 1)));
  to->push_back(std::nearbyint(scaled * 1e6) / 1e6);
}

// What makes it another quantity than one of the same parameter: the template and all that it says
// (constituent, percentile, limits, direction, ...), but for times, levels, members and
// the program.
std::vector<char> product_of(std::span<const char> section, const ProductPlaces& p) {
  const auto coefficients = static_cast<int64_t>(take_number(section.data() + 5, 2));
  const int64_t end = p.interval > 0 ? p.interval : std::ssize(section) - 4 * coefficients;
  constexpr int64_t kBegin = 7, kSurfaceBytes = 12, kMemberBytes = 2, kStepBytes = 4;
  std::vector<char> product;
  for (int64_t i = kBegin; i < std::min(end, std::ssize(section)); i++) {
    const auto within = [i](int64_t from, int64_t to) { return from > 0 && i >= from && i < to; };
    const bool left_out = (p.generating > 0 && within(p.generating + 1, p.step + kStepBytes)) ||
                          within(p.first_surface, p.first_surface + kSurfaceBytes) ||
                          within(p.member, p.member + kMemberBytes);
    if (!left_out) product.push_back(section[static_cast<size_t>(i)]);
  }
  return product;
}

// Types of grids with rows of one length, whose numbers of columns and rows are where those of
// longitudes and latitudes have them.
constexpr int64_t kRectangular2[] = {0, 1, 2, 3, 10, 12, 20, 30, 31, 40, 41, 42, 43, 90, 110, 140};
constexpr int64_t kRectangular1[] = {0, 1, 3, 4, 5, 8, 10, 13, 14, 20, 24, 30, 34, 90};

bool is_in(std::span<const int64_t> all, int64_t one) {
  return std::ranges::find(all, one) != all.end();
}

// Of the scanning mode in section 3, from 0.
int64_t scanning_octet(int64_t grid) {
  switch (grid) {
    case 10:
    case 12: return 59;
    case 20:
    case 30:
    case 31: return 64;
    case 90:
    case 140: return 63;
    case 110: return 56;
    default: return 71;
  }
}

Identity of_edition2(std::span<const char> head) {
  Identity id;
  const auto sections = sections_of(head.data(), static_cast<int64_t>(head.size()));
  if (!sections) return id;
  const int64_t three = sections->at[3], four = sections->at[4];
  const ProductPlaces& p = places_of_product(at(head, four + 7, 2));
  id.parameter = {at(head, 6, 1), at(head, four + 9, 1), at(head, four + 10, 1)};
  const int64_t one = sections->at[1];
  id.centre = at(head, one + 5, 2);
  id.reference_s = time_of(head, at(head, one + 12, 2), one + 14) + at(head, one + 18, 1);
  id.time_s = id.reference_s;
  if (p.unit > 0 && p.step > 0 && four + p.step + 4 <= std::ssize(head))
    id.time_s +=
        unit_s(at(head, four + p.unit, 1)) * take_signed(head.data() + four + p.step, 4);
  id.end_s = id.time_s;
  if (const int64_t end = four + p.interval; p.interval > 0)
    id.end_s = time_of(head, at(head, end, 2), end + 2) + at(head, end + 6, 1);
  if (p.first_surface > 0) add_surface(head, four + p.first_surface, &id.level);
  if (p.second_surface > 0) add_surface(head, four + p.second_surface, &id.level);
  if (p.member > 0) id.member = at(head, four + p.member, 1);
  if (p.process > 0) id.process = static_cast<int>(at(head, four + p.process, 1));
  const int64_t length = std::min(at(head, four, 4), std::ssize(head) - four);
  id.product = product_of(head.subspan(static_cast<size_t>(four), static_cast<size_t>(length)), p);
  id.quantity = id.product;
  // The template's number, which comes first, differs where a run's first time is no interval.
  constexpr int64_t kBegin = 7;
  if (const int64_t made = p.generating - kBegin; made >= 0 && made < std::ssize(id.quantity))
    id.quantity.erase(id.quantity.begin() + made);
  if (sections->at[2] > 0)  // of the centre: type and stream of MARS
    id.product.insert(id.product.end(), head.begin() + sections->at[2] + 4, head.begin() + three);
  for (const int64_t surface : {p.first_surface, p.second_surface}) {
    // A value that is not compared still tells two messages of one time apart.
    if (surface > 0 && !has_value2(at(head, four + surface, 1)))
      id.product.push_back(static_cast<char>(at(head, four + surface + 5, 1)));
  }
  const int64_t grid = at(head, three + 12, 2);
  id.grid = {grid, 0, 0, at(head, three + 6, 4)};
  if (grid >= kHarmonics && grid <= kLastHarmonics)  // J and K; writers differ on the points
    id.grid = {grid, at(head, three + 14, 4), at(head, three + 18, 4), 0};
  if (is_in(kRectangular2, grid)) {
    id.columns = at(head, three + 30, 4);
    id.rows = at(head, three + 34, 4);
    if (id.columns * id.rows != id.grid[3]) id.columns = id.rows = 0;
  }
  constexpr int64_t kRegularBytes = 72;  // of section 3
  if (grid == 0 || grid == 40) {
    if (four - three < kRegularBytes) return id;
    id.grid[1] = at(head, three + 30, 4);
    id.grid[2] = at(head, three + 34, 4);
    id.first_lat = static_cast<double>(take_signed(head.data() + three + 46, 4)) * 1e-6;
    id.first_lon = static_cast<double>(take_signed(head.data() + three + 50, 4)) * 1e-6;
    id.last_lat = static_cast<double>(take_signed(head.data() + three + 55, 4)) * 1e-6;
    id.last_lon = static_cast<double>(take_signed(head.data() + three + 59, 4)) * 1e-6;
    id.scanning = static_cast<int>(at(head, three + 71, 1));
  } else {
    id.definition.assign(head.begin() + three + 12, head.begin() + four);
    if (id.columns > 0)
      id.scanning = static_cast<int>(at(head, three + scanning_octet(grid), 1));
  }
  return id;
}

Identity of_edition1(std::span<const char> head) {
  Identity id;
  id.edition = 1;
  const int64_t one = 8, two = one + at(head, one, 3);
  id.centre = at(head, one + 4, 1);
  id.parameter = {at(head, one + 3, 1), at(head, one + 8, 1)};
  const int64_t type = at(head, one + 9, 1);
  id.level = {static_cast<double>(type),
              has_value1(type) ? static_cast<double>(at(head, one + 10, 2)) : 0};
  const int64_t indicator = at(head, one + 20, 1);
  const int64_t year = 100 * (at(head, one + 24, 1) - 1) + at(head, one + 12, 1);
  const int64_t unit = unit1_s(at(head, one + 17, 1));
  id.reference_s = time_of(head, year, one + 13);
  id.time_s = id.reference_s + unit * at(head, one + 18, indicator == 10 ? 2 : 1);
  id.end_s = id.time_s;
  // 0 and 1 are forecasts and analyses, 10 a forecast with a long step; all others means and the
  // like, from 113 on of several forecasts or analyses.
  if (indicator > 1 && indicator != 10) id.process = static_cast<int>(indicator);
  if (indicator >= 2 && indicator <= 5)
    id.end_s = id.reference_s + unit * at(head, one + 19, 1);
  // A member where ECMWF has it: local definition 1, with 0 in what is of no ensemble.
  const bool local = two - one > 49 && at(head, one + 40, 1) == 1;
  if (local && at(head, one + 49, 1) != 0) id.member = at(head, one + 49, 1);
  const int64_t end = std::min(two, std::ssize(head));
  if (end - one > 40) id.product.assign(head.begin() + one + 40, head.begin() + end);
  // A value that is not compared still tells two messages of one time apart.
  for (int64_t i = 0; i < 2 && !has_value1(type); i++)
    id.product.push_back(static_cast<char>(at(head, one + 10 + i, 1)));
  if ((at(head, one + 7, 1) & 0x80) == 0) return id;
  const int64_t grid = at(head, two + 5, 1);
  id.grid = {grid, 0, 0, 0};
  if (grid == kHarmonics) id.grid = {grid, at(head, two + 6, 2), at(head, two + 8, 2), 0};
  if (!is_in(kRectangular1, grid) || two + 28 > static_cast<int64_t>(head.size())) return id;
  const int64_t columns = at(head, two + 6, 2), rows = at(head, two + 8, 2);
  const bool is_reduced = columns == kRowsOfTheirOwn[1] || rows == kRowsOfTheirOwn[1];
  if (!is_reduced) id.columns = columns, id.rows = rows;
  id.scanning = static_cast<int>(at(head, two + 27, 1));
  if (grid != 0 && grid != 4) {
    id.grid[3] = id.columns * id.rows;
    const int64_t length = std::clamp<int64_t>(at(head, two, 3), 28, std::ssize(head) - two);
    id.definition.assign(head.begin() + two + 5, head.begin() + two + length);
    return id;
  }
  id.grid[1] = columns;
  id.grid[2] = rows;
  id.first_lat = static_cast<double>(take_signed(head.data() + two + 10, 3)) * 1e-3;
  id.first_lon = static_cast<double>(take_signed(head.data() + two + 13, 3)) * 1e-3;
  id.last_lat = static_cast<double>(take_signed(head.data() + two + 17, 3)) * 1e-3;
  id.last_lon = static_cast<double>(take_signed(head.data() + two + 20, 3)) * 1e-3;
  return id;
}

}  // namespace

std::string grid_in_words(const Identity& id) {
  if (id.grid.empty()) return "no grid";
  const int64_t type = id.grid[0], columns = id.grid[1], rows = id.grid[2], points = id.grid[3];
  const auto number = [](int64_t n) { return std::to_string(n); };
  const std::string values = points > 0 ? number(points) + " points" : "";
  if (type >= kHarmonics && type <= kLastHarmonics)
    return "spherical harmonics (T " + number(columns) + ")";
  const bool is_gaussian = type == (id.edition == 1 ? 4 : 40);
  if (type == 0 || is_gaussian) {
    const std::string kind = is_gaussian ? "Gaussian" : "lon-lat";
    if (columns != kRowsOfTheirOwn[id.edition])
      return "a regular " + kind + " grid (" + number(columns) + " x " + number(rows) + " points)";
    return "a reduced " + kind + " grid (" + number(rows) + " rows" +
           (values.empty() ? "" : ", " + values) + ")";
  }
  const std::string name = id.edition == 2 && type == 101 ? "an unstructured grid"
                                                       : "a grid of type " + number(type);
  if (id.columns > 0)
    return name + " (" + number(id.columns) + " x " + number(id.rows) + " points)";
  return name + (values.empty() ? "" : " (" + values + ")");
}

Identity identity_of(std::span<const char> head, int edition) {
  return edition == 1 ? of_edition1(head) : of_edition2(head);
}

}  // namespace weir::output::grib
