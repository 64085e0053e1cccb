// SPDX-License-Identifier: Apache-2.0
// Path templates of streams, and the calendar that dates in them follow.
#pragma once

#include <cstdint>
#include <string>

#include "output/core/status.h"

namespace weir::output {

struct Date {
  int64_t year = 1;
  int month = 1, day = 1, hour = 0, minute = 0, second = 0;
  int day_of_year = 1;
};

// CF's calendars: standard and gregorian (Julian before 1582-10-15), proleptic_gregorian, julian,
// noleap and 365_day, all_leap and 366_day, 360_day. "2000-01-01", "2000-01-01 12:00",
// "2000-01-01T12:00:00" are dates.
bool is_calendar(const std::string& name);
Result<Date> parse_date(const std::string& text, const std::string& calendar);
// The date `seconds` after the reference, rounded to the nearest second.
Result<Date> date_after(const std::string& reference, const std::string& calendar, double seconds);

struct PathValues {
  Date date;
  int64_t step = 0, file = 0;
  std::string stream;
};

// Whether the template can be expanded: only %Y %m %d %H %M %S %j %%, {step} {file} {stream}, with
// widths ({step:06}).
Status check_path_template(const std::string& path);
std::string expand_path(const std::string& path, const PathValues& values);
// How far apart in time two files must be to have different names: seconds of the finest code, of
// the calendar's longest month or year. -1: any two have, by {step} or {file}; 0: none have.
double path_resolution_s(const std::string& path, const std::string& calendar);

enum class PathPart { kTime, kYear, kMonth, kDay, kDayOfYear, kStep, kFile, kStream };
// Whether the template has such a part; kTime: any of the codes of time.
bool path_has(const std::string& path, PathPart part);

}  // namespace weir::output
