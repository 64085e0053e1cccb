// SPDX-License-Identifier: Apache-2.0
// Days are counted from 0001-01-01 of the calendar, years before 1 exist (proleptic, with a year 0)
// as CF wants them. Source: CF conventions 1.11, section 4.4.1.
#include <charconv>
#include <cmath>

#include "output/model/path.h"
#include "output/model/text.h"

namespace weir::output {
namespace {

enum class Kind { kGregorian, kJulian, kMixed, kNoLeap, kAllLeap, k360 };

struct Named {
  const char* name;
  Kind kind;
};
constexpr Named kCalendars[] = {
    {"proleptic_gregorian", Kind::kGregorian},
    {"standard", Kind::kMixed},
    {"gregorian", Kind::kMixed},
    {"julian", Kind::kJulian},
    {"noleap", Kind::kNoLeap},
    {"365_day", Kind::kNoLeap},
    {"all_leap", Kind::kAllLeap},
    {"366_day", Kind::kAllLeap},
    {"360_day", Kind::k360},
};

const Named* find(const std::string& name) {
  for (const Named& named : kCalendars) {
    if (name == named.name) return &named;
  }
  return nullptr;
}

int64_t floor_divided(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

bool is_leap(Kind kind, int64_t year) {
  switch (kind) {
    case Kind::kGregorian: return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    case Kind::kJulian: return year % 4 == 0;
    default: return kind == Kind::kAllLeap;
  }
}

int month_days(Kind kind, int64_t year, int month) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (kind == Kind::k360) return 30;
  return kDays[month - 1] + (month == 2 && is_leap(kind, year));
}

int64_t days_before_year(Kind kind, int64_t year) {
  const int64_t y = year - 1;
  switch (kind) {
    case Kind::kGregorian:
      return 365 * y + floor_divided(y, 4) - floor_divided(y, 100) + floor_divided(y, 400);
    case Kind::kJulian: return 365 * y + floor_divided(y, 4);
    case Kind::kAllLeap: return 366 * y;
    case Kind::k360: return 360 * y;
    default: return 365 * y;
  }
}

int days_before_month(Kind kind, int64_t year, int month) {
  int days = 0;
  for (int m = 1; m < month; m++) days += month_days(kind, year, m);
  return days;
}

int64_t days_of(Kind kind, const Date& date) {
  return days_before_year(kind, date.year) + days_before_month(kind, date.year, date.month) +
         date.day - 1;
}

// The mixed calendar: Thursday 4 October 1582 (Julian) is followed by Friday 15 October
// (Gregorian).
constexpr int64_t kFirstGregorianDay = 577735;  // of 1582-10-15, counted in the Gregorian calendar
// 0001-01-01 of the Julian calendar is two days before that of the Gregorian one.
constexpr int64_t kJulianAhead = 2;

int64_t days_from_date(Kind kind, const Date& date) {
  if (kind != Kind::kMixed) return days_of(kind, date);
  const bool gregorian =
      date.year > 1582 ||
      (date.year == 1582 && (date.month > 10 || (date.month == 10 && date.day >= 15)));
  return gregorian ? days_of(Kind::kGregorian, date) : days_of(Kind::kJulian, date) - kJulianAhead;
}

Date date_from_days(Kind kind, int64_t days) {
  if (kind == Kind::kMixed) {
    return days >= kFirstGregorianDay ? date_from_days(Kind::kGregorian, days)
                                      : date_from_days(Kind::kJulian, days + kJulianAhead);
  }
  Date date;
  date.year = floor_divided(days, kind == Kind::k360       ? 360
                                  : kind == Kind::kAllLeap ? 366
                                                           : 365) +
              1;
  while (days_before_year(kind, date.year) > days) date.year--;
  while (days_before_year(kind, date.year + 1) <= days) date.year++;
  int left = static_cast<int>(days - days_before_year(kind, date.year));
  date.day_of_year = left + 1;
  while (left >= month_days(kind, date.year, date.month))
    left -= month_days(kind, date.year, date.month++);
  date.day = left + 1;
  return date;
}

constexpr int64_t kDay = 86400;
constexpr int64_t kLargestYear = 999999;

struct Part {
  const char* name;
  int64_t least, most;
};

// Digits at `at`, which moves behind them; false when there are none.
bool take(const std::string& text, size_t* at, int64_t* value) {
  const char* begin = text.data() + *at;
  const char* end = text.data() + text.size();
  if (begin == end || *begin < '0' || *begin > '9') return false;
  const auto done = std::from_chars(begin, end, *value);
  if (done.ec != std::errc()) return false;
  *at = static_cast<size_t>(done.ptr - text.data());
  return true;
}

bool scan(const std::string& text, int64_t (&part)[6]) {
  const char* separators[] = {"-", "-", "T ", ":", ":"};
  size_t at = 0;
  for (int i = 0; i < 6; i++) {
    if (!take(text, &at, &part[i])) return false;
    if (at == text.size()) return i == 2 || i == 4 || i == 5;
    if (i == 5 || std::string(separators[i]).find(text[at]) == std::string::npos) return false;
    at++;
  }
  return false;
}

}  // namespace

bool is_calendar(const std::string& name) { return find(name) != nullptr; }

Result<Date> parse_date(const std::string& text, const std::string& calendar) {
  const Named* named = find(calendar);
  if (!named)
    return Status(WEIR_E_ARGUMENT,
                  "calendar " + quoted(calendar) + ": expected a calendar of the CF conventions");
  int64_t part[6] = {1, 1, 1, 0, 0, 0};
  const auto wrong = [&](const std::string& why) {
    return Status(WEIR_E_ARGUMENT, "date " + quoted(text) + " (calendar " + calendar + "): " + why);
  };
  if (!scan(text, part))
    return wrong("expected a date such as 2026-11-21 or 2026-11-21 12:00:00");
  constexpr Part kParts[] = {{"year", 0, kLargestYear}, {"month", 1, 12}, {"day", 1, 31},
                             {"hour", 0, 23},           {"minute", 0, 59}, {"second", 0, 59}};
  for (size_t i = 0; i < std::size(kParts); i++) {
    if (part[i] >= kParts[i].least && part[i] <= kParts[i].most) continue;
    return wrong(std::string(kParts[i].name) + " " + std::to_string(part[i]) + "; expected " +
                 std::to_string(kParts[i].least) + " to " + std::to_string(kParts[i].most));
  }
  Date date{part[0],
            static_cast<int>(part[1]),
            1,
            static_cast<int>(part[3]),
            static_cast<int>(part[4]),
            static_cast<int>(part[5])};
  // Which days exist is what comes back: 31 April and 10 October 1582 become other days.
  date.day = static_cast<int>(part[2]);
  const Date back = date_from_days(named->kind, days_from_date(named->kind, date));
  if (back.month != date.month || back.day != date.day || back.year != date.year) {
    Kind kind = named->kind;
    if (kind == Kind::kMixed) kind = date.year > 1582 ? Kind::kGregorian : Kind::kJulian;
    const int days = month_days(kind, date.year, date.month);
    return wrong("there is no day " + std::to_string(date.day) + " in month " +
                 std::to_string(date.month) + " of the year " + std::to_string(date.year) +
                 (date.day > days ? "; expected 1 to " + std::to_string(days)
                                  : "; 4 October is followed by 15 October there"));
  }
  date.day_of_year = back.day_of_year;
  return date;
}

Result<Date> date_after(const std::string& reference, const std::string& calendar, double seconds) {
  Result<Date> from = parse_date(reference, calendar);
  if (!from.ok()) return from.status();
  if (!(std::abs(seconds) < 1e13))
    return Status(WEIR_E_ARGUMENT, "time " + number_text(seconds) + " s: no date is so far off");
  const Kind kind = find(calendar)->kind;
  const int64_t total = days_from_date(kind, *from) * kDay + from->hour * 3600 + from->minute * 60 +
                        from->second + std::llround(seconds);
  const int64_t days = floor_divided(total, kDay);
  Date date = date_from_days(kind, days);
  const int rest = static_cast<int>(total - days * kDay);
  date.hour = rest / 3600;
  date.minute = rest / 60 % 60;
  date.second = rest % 60;
  return date;
}

}  // namespace weir::output
