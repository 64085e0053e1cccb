// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/clock.h"

#include <chrono>
#include <cmath>

#include "output/format/grib/bytes.h"
#include "output/format/grib/grid.h"
#include "output/model/path.h"
#include "output/model/text.h"

namespace weir::output::grib {
namespace {

constexpr const char* kSince = "seconds since ";

// Code tables 4.4 of edition 2 and 4 of edition 1, without those that are no number of seconds.
struct TimeUnit {
  int code;
  int64_t seconds;
  bool edition1, edition2;
};
constexpr TimeUnit kTimeUnits[] = {
    {1, 3600, true, true},    {0, 60, true, true},      {13, 1, false, true},
    {254, 1, true, false},    {10, 10800, true, true},  {11, 21600, true, true},
    {12, 43200, true, true},  {2, 86400, true, true},
};

// Those of which days would be read as other days, or as none.
struct OtherCalendar {
  const char* name;
  const char* has;
};
constexpr const char* kAllLeap =
    "a 29 February in each year, which is no day of GRIB in most of them";
constexpr OtherCalendar kOtherCalendars[] = {
    {"360_day", "a 30 February, which is no day of GRIB"},
    {"all_leap", kAllLeap},
    {"366_day", kAllLeap},
    {"julian", "other dates than GRIB, which readers take for Gregorian ones (13 days apart from "
               "1900 to 2100)"}};

int64_t seconds_in(int unit, int edition) {
  for (const TimeUnit& u : kTimeUnits) {
    if (u.code == unit && (edition == 1 ? u.edition1 : u.edition2)) return u.seconds;
  }
  return 0;
}

// The first unit, hours before all, of which all are whole numbers of at most `most`.
const TimeUnit* unit_for(int edition, int64_t most, std::initializer_list<int64_t> seconds) {
  for (const TimeUnit& u : kTimeUnits) {
    bool fits = edition == 1 ? u.edition1 : u.edition2;
    for (int64_t s : seconds) fits = fits && s % u.seconds == 0 && s / u.seconds <= most;
    if (fits) return &u;
  }
  return nullptr;
}

Status refused(const std::string& why) { return {WEIR_E_VALUE, why}; }

Result<int64_t> whole_seconds(double seconds) {
  const double whole = std::nearbyint(seconds);
  if (std::abs(whole - seconds) > 1e-3 || std::abs(whole) > 1e15)
    return refused("time " + number_text(seconds) +
                   " s: GRIB has whole seconds; choose every_s or the model's step accordingly");
  return static_cast<int64_t>(whole);
}

void put_date(char* at, const Date& date) {
  put_number(at, 2, static_cast<uint64_t>(date.year));
  const int rest[] = {date.month, date.day, date.hour, date.minute, date.second};
  for (int i = 0; i < 5; i++) at[2 + i] = static_cast<char>(rest[i]);
}

Status put_reference(char* message, const TimePlaces& p, const Date& date) {
  if (p.edition == 2) {
    put_date(message + p.reference, date);
    return {};
  }
  if (date.second != 0) return refused("edition 1 of GRIB has no seconds in its reference time");
  const int64_t century = (date.year + 99) / 100;
  const int64_t rest[] = {date.year - 100 * (century - 1), date.month, date.day, date.hour,
                          date.minute};
  for (int i = 0; i < 5; i++) message[p.reference + i] = static_cast<char>(rest[i]);
  message[p.century] = static_cast<char>(century);
  return {};
}

// P1 and P2, of one byte each; of a moment P1 may have two.
Status put_steps1(char* message, const TimePlaces& p, int64_t begin, int64_t end, bool interval) {
  const TimeUnit* unit = unit_for(1, 255, {begin, end});
  if (!unit && !interval) {
    unit = unit_for(1, 65535, {begin});
    if (unit) {
      message[p.unit] = static_cast<char>(unit->code);
      message[p.indicator] = 10;
      put_number(message + p.step, 2, static_cast<uint64_t>(begin / unit->seconds));
      return {};
    }
  }
  if (!unit) {
    return refused("edition 1 of GRIB cannot say " + std::to_string(begin) + " to " +
                   std::to_string(end) + " s since the reference (255 of its units); use grib2");
  }
  message[p.unit] = static_cast<char>(unit->code);
  message[p.step] = static_cast<char>(begin / unit->seconds);
  message[p.length] = static_cast<char>(interval ? end / unit->seconds : 0);
  return {};
}

Status put_steps2(char* message, const TimePlaces& p, int64_t begin, int64_t length,
                  bool interval) {
  constexpr int64_t kMost = 0x7fffffff;
  const TimeUnit* unit = unit_for(2, kMost, {begin, length});
  if (!unit) return refused("a step of " + std::to_string(begin) + " s is too long for GRIB");
  message[p.unit] = static_cast<char>(unit->code);
  put_signed(message + p.step, 4, begin / unit->seconds);
  if (!interval) return {};
  message[p.length_unit] = static_cast<char>(unit->code);
  put_number(message + p.length, 4, static_cast<uint64_t>(length / unit->seconds));
  return {};
}

// Readers add steps to a reference by the Gregorian calendar, whatever that of the model: from
// 28 February to 1 March of a leap year these are two days, though a calendar may have one.
int64_t gregorian_seconds(const Date& date) {
  using namespace std::chrono;
  const sys_days day{year(static_cast<int>(date.year)) / date.month / date.day};
  return ((day.time_since_epoch().count() * 24 + date.hour) * 60 + date.minute) * 60 + date.second;
}

Date gregorian_date(int64_t seconds) {
  using namespace std::chrono;
  const sys_seconds time{std::chrono::seconds(seconds)};
  const sys_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  return {int{date.year()},
          static_cast<int>(unsigned{date.month()}),
          static_cast<int>(unsigned{date.day()}),
          static_cast<int>(clock.hours().count()),
          static_cast<int>(clock.minutes().count()),
          static_cast<int>(clock.seconds().count())};
}

double seconds_between(const Clock& clock, const Date& date) {
  // Calendars count days alike in both directions: the difference is found by halving.
  double low = -4e11, high = 4e11;
  const auto at = [&](double s) {
    Result<Date> d = date_after(clock.reference(), clock.calendar(), s);
    return d.ok() ? std::tuple(d->year, d->month, d->day, d->hour, d->minute, d->second)
                  : std::tuple(int64_t{s < 0 ? -1000000 : 1000000}, 1, 1, 0, 0, 0);
  };
  const auto wanted =
      std::tuple(date.year, date.month, date.day, date.hour, date.minute, date.second);
  while (high - low > 1) {
    const double middle = std::floor((low + high) / 2);
    (at(middle) <= wanted ? low : high) = middle;
  }
  return low;
}

}  // namespace

Result<Clock> Clock::of(const FileDescription& description) {
  Clock clock;
  for (const Variable& v : description.variables) {
    if (v.name != "time") continue;
    const std::string* units = text_of(v.attributes, "units");
    const std::string* calendar = text_of(v.attributes, "calendar");
    if (units && units->rfind(kSince, 0) == 0)
      clock.reference_ = units->substr(std::string(kSince).size());
    if (calendar) clock.calendar_ = *calendar;
  }
  if (clock.reference_.empty()) clock.reference_ = "2000-01-01 00:00:00";
  if (clock.calendar_.empty()) clock.calendar_ = "proleptic_gregorian";
  for (const OtherCalendar& other : kOtherCalendars) {
    if (clock.calendar_ != other.name) continue;
    return Status(WEIR_E_FORMAT, "calendar " + quoted(other.name) + " has " + other.has +
                                     "; write the stream as netCDF or Zarr");
  }
  return clock;
}

TimePlaces TimePlaces::in(const Handle& h, int edition) {
  TimePlaces p;
  p.edition = edition;
  if (edition == 1) {
    p.reference = h.offset("yearOfCentury");
    p.century = h.offset("centuryOfReferenceTimeOfData");
    p.unit = h.offset("unitOfTimeRange");
    p.step = h.offset("P1");
    p.length = h.offset("P2");
    p.indicator = h.offset("timeRangeIndicator");
    return p;
  }
  p.reference = h.offset("year");
  p.unit = h.offset("indicatorOfUnitOfTimeRange");
  p.step = h.offset("forecastTime");
  p.end = h.offset("yearOfEndOfOverallTimeInterval");
  p.length_unit = h.offset("indicatorOfUnitForTimeRange");
  p.length = h.offset("lengthOfTimeRange");
  return p;
}

Status put_times(char* message, const TimePlaces& p, const Clock& clock, const Moment& moment,
                 bool from_start) {
  const bool interval =
      moment.interval && (p.edition == 2 ? p.end >= 0 && p.length >= 0 : message[p.indicator] > 1);
  Result<int64_t> time = whole_seconds(moment.time_s),
                  begin = whole_seconds(interval ? moment.begin_s : moment.time_s);
  if (!time.ok() || !begin.ok()) return time.ok() ? begin.status() : time.status();
  const auto date = [&](int64_t seconds) {
    return date_after(clock.reference(), clock.calendar(), static_cast<double>(seconds));
  };
  Result<Date> first = date(*begin), end = date(*time);
  Result<Date> reference = from_start ? date(0) : first;
  for (Result<Date>* one : {&reference, &first, &end}) {
    WEIR_TRY(one->status());
    if (const int64_t year = (*one)->year; year < 1 || year > 9999)
      return refused("year " + std::to_string(year) + ": expected 1 to 9999 in GRIB");
  }
  WEIR_TRY(put_reference(message, p, *reference));
  const int64_t from = gregorian_seconds(*reference), until = gregorian_seconds(*end);
  const int64_t step = gregorian_seconds(*first) - from;
  if (p.edition == 1) return put_steps1(message, p, step, until - from, interval);
  if (p.unit < 0 || p.step < 0) return refused("the product's template has no time of forecast");
  if (interval) put_date(message + p.end, *end);
  return put_steps2(message, p, step, until - from - step, interval);
}

Result<Moment> take_times(const char* message, const TimePlaces& p, const Clock& clock) {
  Date date;
  if (p.edition == 1) {
    const auto byte = [&](int64_t at) { return static_cast<int>(take_number(message + at, 1)); };
    date.year = byte(p.reference) + 100 * (byte(p.century) - 1);
    date.month = byte(p.reference + 1);
    date.day = byte(p.reference + 2);
    date.hour = byte(p.reference + 3);
    date.minute = byte(p.reference + 4);
  } else {
    const auto byte = [&](int i) {
      return static_cast<int>(take_number(message + p.reference + 2 + i, 1));
    };
    date.year = static_cast<int64_t>(take_number(message + p.reference, 2));
    date.month = byte(0), date.day = byte(1), date.hour = byte(2), date.minute = byte(3),
    date.second = byte(4);
  }
  const int64_t reference = gregorian_seconds(date);
  const auto at = [&](int64_t steps) {
    return seconds_between(clock, gregorian_date(reference + steps));
  };
  const auto steps = [&](int64_t unit_at, int64_t at, int bytes) -> int64_t {
    if (unit_at < 0 || at < 0) return 0;
    const int64_t seconds =
        seconds_in(static_cast<int>(take_number(message + unit_at, 1)), p.edition);
    const int64_t n = bytes == 4 ? take_signed(message + at, 4)
                                 : static_cast<int64_t>(take_number(message + at, bytes));
    return seconds * n;
  };
  Moment moment;
  if (p.edition == 1) {
    const int indicator = static_cast<int>(take_number(message + p.indicator, 1));
    moment.interval = indicator >= 2 && indicator <= 5;
    moment.begin_s = at(steps(p.unit, p.step, indicator == 10 ? 2 : 1));
    moment.time_s = moment.interval ? at(steps(p.unit, p.length, 1)) : moment.begin_s;
    return moment;
  }
  moment.interval = p.end >= 0;
  const int64_t begin = steps(p.unit, p.step, 4);
  moment.begin_s = at(begin);
  moment.time_s =
      moment.interval ? at(begin + steps(p.length_unit, p.length, 4)) : moment.begin_s;
  return moment;
}

}  // namespace weir::output::grib
