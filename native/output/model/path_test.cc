// SPDX-License-Identifier: Apache-2.0
#include "output/model/path.h"

#include <gtest/gtest.h>

namespace weir::output {
namespace {

std::string text_of(const Result<Date>& date) {
  if (!date.ok()) return date.status().message();
  return expand_path("%Y-%m-%d %H:%M:%S %j", {*date, 0, 0, ""});
}

// Each calendar's days counted one by one, by the rules of CF 4.4.1 written out again.
struct Counted {
  int64_t year, month, day;
};

bool leap(const std::string& calendar, int64_t y, bool julian_part) {
  if (calendar == "noleap" || calendar == "360_day") return false;
  if (calendar == "all_leap") return true;
  if (calendar == "julian" || julian_part) return y % 4 == 0;
  return y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
}

void next_day(const std::string& calendar, Counted* d) {
  static const int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool julian_part = calendar == "standard" && d->year <= 1582;
  if (calendar == "standard" && d->year == 1582 && d->month == 10 && d->day == 4) d->day = 14;
  int in_month =
      calendar == "360_day"
          ? 30
          : kDays[d->month - 1] + (d->month == 2 && leap(calendar, d->year, julian_part));
  if (++d->day > in_month) {
    d->day = 1;
    if (++d->month > 12) {
      d->month = 1;
      d->year++;
    }
  }
}

TEST(calendar, every_day_of_five_centuries_follows_the_one_before) {
  for (const char* calendar :
       {"proleptic_gregorian", "standard", "julian", "noleap", "all_leap", "360_day"}) {
    Counted d{1500, 1, 1};
    for (int64_t day = 0; day < 365 * 500; day++) {
      Result<Date> date =
          date_after("1500-01-01", calendar, 86400.0 * static_cast<double>(day) + 3661);
      ASSERT_TRUE(date.ok()) << date.status().message();
      ASSERT_EQ(date->year, d.year) << calendar << " day " << day;
      ASSERT_EQ(date->month, d.month) << calendar << " day " << day;
      ASSERT_EQ(date->day, d.day) << calendar << " day " << day;
      ASSERT_EQ(date->hour * 10000 + date->minute * 100 + date->second, 10101);
      next_day(calendar, &d);
    }
  }
}

TEST(calendar, known_dates) {
  EXPECT_EQ(text_of(date_after("2000-01-01", "standard", -86400)), "1999-12-31 00:00:00 365");
  EXPECT_EQ(text_of(date_after("2000-02-28 12:00", "proleptic_gregorian", 86400)),
            "2000-02-29 12:00:00 060");
  EXPECT_EQ(text_of(date_after("2000-02-28T12:00:00", "noleap", 86400)), "2000-03-01 12:00:00 060");
  EXPECT_EQ(text_of(date_after("2000-02-30", "360_day", 86400 * 330.0)), "2001-01-30 00:00:00 030");
  EXPECT_EQ(text_of(date_after("1582-10-04", "standard", 86400)), "1582-10-15 00:00:00 288");
  EXPECT_EQ(text_of(date_after("0001-01-01", "proleptic_gregorian", -1)),
            "0000-12-31 23:59:59 366");
}

TEST(calendar, times_are_rounded_to_the_second) {
  EXPECT_EQ(text_of(date_after("2000-01-01", "noleap", 3599.9999999)), "2000-01-01 01:00:00 001");
}

TEST(calendar, dates_that_do_not_exist_are_refused) {
  for (const char* date :
       {"2001-02-29", "2000-13-01", "2000-00-01", "2000-01-00", "2000-04-31", "2000-01-01 24:00",
        "", "2000", "2000-01", "2000-01-01 ", "2000-01-01 1", "2000-01-01x",
        "2000-01-01 00:00:00.5", "99999999999999999999-01-01", "-1-01-01"}) {
    EXPECT_FALSE(parse_date(date, "standard").ok()) << date;
  }
  EXPECT_FALSE(parse_date("1582-10-10", "standard").ok());
  EXPECT_TRUE(parse_date("1582-10-10", "proleptic_gregorian").ok());
  EXPECT_TRUE(parse_date("2001-02-30", "360_day").ok());
  EXPECT_FALSE(parse_date("2001-01-31", "360_day").ok());
  EXPECT_FALSE(parse_date("2001-01-01", "lunar").ok());
  EXPECT_FALSE(date_after("2000-01-01", "standard", 1e300).ok());
}

TEST(calendar, what_is_wrong_with_a_date_is_named) {
  const auto says = [](const char* date, const char* calendar) {
    return parse_date(date, calendar).status().message();
  };
  const std::string standard = "' (calendar standard): ";
  EXPECT_EQ(says("2000-13-01", "standard"),
            "date '2000-13-01" + standard + "month 13; expected 1 to 12");
  EXPECT_EQ(says("2000-01-01 24:00", "standard"),
            "date '2000-01-01 24:00" + standard + "hour 24; expected 0 to 23");
  EXPECT_EQ(says("2000-04-31", "standard"), "date '2000-04-31" + standard +
                "there is no day 31 in month 4 of the year 2000; expected 1 to 30");
  EXPECT_EQ(says("2000-02-30", "standard"), "date '2000-02-30" + standard +
                "there is no day 30 in month 2 of the year 2000; expected 1 to 29");
  EXPECT_EQ(says("1582-10-10", "standard"), "date '1582-10-10" + standard +
                "there is no day 10 in month 10 of the year 1582; 4 October is followed by 15 "
                "October there");
  EXPECT_NE(says("2001-01-31", "360_day").find("expected 1 to 30"), std::string::npos);
  EXPECT_NE(says("1 May", "standard").find("a date such as"), std::string::npos);
}

TEST(path, templates_are_expanded) {
  const PathValues values{{2026, 11, 21, 6, 5, 4, 325}, 42, 7, "history"};
  EXPECT_EQ(expand_path("out/{stream}_%Y-%m-%d_%H:%M:%S.nc", values),
            "out/history_2026-11-21_06:05:04.nc");
  EXPECT_EQ(expand_path("{step}-{step:06}-{file:03}-%j", values), "42-000042-007-325");
  EXPECT_EQ(expand_path("100%%_{{x}}", values), "100%_{x}");
  const PathValues before{{-499, 8, 30, 0, 0, 0, 242}, 0, 0, "history"};
  EXPECT_EQ(expand_path("%Y%m%d", before), "-04990830");
}

TEST(path, mistakes_are_named) {
  const auto says = [](const char* path) { return check_path_template(path).message(); };
  EXPECT_NE(says("a_%q.nc").find("'%q': expected one of %Y"), std::string::npos);
  EXPECT_NE(says("a_{setp}.nc").find("did you mean 'step'?"), std::string::npos);
  EXPECT_NE(says("a_{step").find("without its }"), std::string::npos);
  EXPECT_NE(says("a_{step:x}").find("expected a width"), std::string::npos);
  EXPECT_NE(says("a_{step:99}").find("expected a width"), std::string::npos);
  EXPECT_NE(says("a_{stream:3}").find("expected a width"), std::string::npos);
  EXPECT_NE(says("").find("empty"), std::string::npos);
  EXPECT_NE(says("out/").find("slash"), std::string::npos);
  for (const char* directory : {".", "..", "out/.", "out/.."})
    EXPECT_NE(says(directory).find("is a directory"), std::string::npos) << directory;
  EXPECT_NE(says("a%").find("expected one of"), std::string::npos);
  EXPECT_TRUE(check_path_template("plain.nc").ok());
}

TEST(path, resolution_tells_names_apart) {
  const auto apart = [](const char* path, const char* calendar = "standard") {
    return path_resolution_s(path, calendar);
  };
  EXPECT_EQ(apart("a.nc"), 0);
  EXPECT_EQ(apart("{stream}.nc"), 0);
  EXPECT_EQ(apart("a_%Y%m.nc"), 31 * 86400);
  EXPECT_EQ(apart("a_%Y%m.nc", "360_day"), 30 * 86400);
  EXPECT_EQ(apart("a_%Y.nc", "noleap"), 365 * 86400);
  EXPECT_EQ(apart("a_%Y%m%d%H.nc"), 3600);
  EXPECT_EQ(apart("a_%Y_{file}.nc"), -1);
}

TEST(path, parts_of_a_template_are_found) {
  EXPECT_TRUE(path_has("a_%j.nc", PathPart::kTime));
  EXPECT_FALSE(path_has("a_%%Y_{{step}}.nc", PathPart::kTime));
  EXPECT_FALSE(path_has("a_%%Y_{{step}}.nc", PathPart::kStep));
  EXPECT_TRUE(path_has("a_{step:03}.nc", PathPart::kStep));
  EXPECT_FALSE(path_has("%m", PathPart::kYear));
}

}  // namespace
}  // namespace weir::output
