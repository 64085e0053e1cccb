// SPDX-License-Identifier: Apache-2.0
#include "output/model/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "output/model/sample.h"
#include "output/model/schedule.h"
#include "output/model/text.h"

namespace weir::output {
namespace {

// What check_catalogue says of the small catalogue after a change.
std::string reported(const std::function<void(Catalogue&)>& change) {
  Catalogue c = small_catalogue();
  change(c);
  std::vector<std::string> warnings;
  const Status status = check_catalogue(c, &warnings);
  return status.ok() ? "fine" : status.message();
}

TEST(check, the_sample_is_fine) { EXPECT_EQ(reported([](Catalogue&) {}), "fine"); }

struct Case {
  const char* says;
  std::function<void(Catalogue&)> change;
};

const Case kMistakes[] = {
    {"field '2t': the name begins with something else",
     [](Catalogue& c) { c.fields[0].name = "2t"; }},
    {"field 'a b': the name has ' ' in it", [](Catalogue& c) { c.fields[0].name = "a b"; }},
    {"field 'aäb': the name has 'ä' in it", [](Catalogue& c) { c.fields[0].name = "aäb"; }},
    {"field: the name is empty", [](Catalogue& c) { c.fields[0].name = ""; }},
    {"more than 255 bytes", [](Catalogue& c) { c.fields[0].name = std::string(256, 'a'); }},
    {"there is a field of this name already", [](Catalogue& c) { c.fields[1].name = "t"; }},
    {"axis 't': there is a field of this name already",
     [](Catalogue& c) { c.axes[0].name = "t"; }},
    {"field 'time': weir writes the variable of this name itself",
     [](Catalogue& c) { c.fields[0].name = "time"; }},
    {"axis 'level': values is not monotonic: values[2] = 900 follows 850",
     [](Catalogue& c) { c.axes[0].values[2] = 900; }},
    {"values[1] is nan, no number", [](Catalogue& c) { c.axes[0].values[1] = NAN; }},
    {"axis 'level': 2 bounds; expected two for each of 3 values",
     [](Catalogue& c) { c.axes[0].bounds = {1, 2}; }},
    {"grid 'atmosphere': lon has 3 values, expected 4",
     [](Catalogue& c) { c.grids[0].x.pop_back(); }},
    {"its longitudes, from 0 to 540, go over 540 degrees; expected at most 360",
     [](Catalogue& c) { c.grids[0].x = {0, 180, 360, 540}; }},
    {"longitude 1e+300; expected degrees, -720 to 720",
     [](Catalogue& c) { c.grids[0].x = {0, 1, 2, 1e300}; }},
    {"latitude 91", [](Catalogue& c) { c.grids[0].y = {0, 45, 91}; }},
    {"0 x 3 points", [](Catalogue& c) { c.grids[0].nx = 0; }},
    {"Gaussian grid has an even number",
     [](Catalogue& c) { c.grids[0].kind = GridKind::kGaussian; }},
    {"columns from 1 do not all lie in grid 'atmosphere', which has 4 x 3",
     [](Catalogue& c) { c.decompositions[0].i0 = 1; }},
    {"rows from 2 do not all lie in", [](Catalogue& c) { c.decompositions[0].j0 = 2; }},
    {"do not all lie in", [](Catalogue& c) { c.decompositions[0].ni = INT64_MAX; }},
    {"index 12 (entry 1) lies outside of grid",
     [](Catalogue& c) {
       c.decompositions[0].block = false;
       c.decompositions[0].indices = {0, 12};
     }},
    {"a halo is negative", [](Catalogue& c) { c.decompositions[0].halo.east = -1; }},
    {"axis 'level' twice", [](Catalogue& c) { c.fields[0].axes = {0, 0}; }},
    {"no type that weir knows (17)",
     [](Catalogue& c) { c.fields[0].type = static_cast<Type>(17); }},
    {"missing_value 1e+20 is no number of the field's type",
     [](Catalogue& c) {
       c.fields[0].file_type = WEIR_INT16;
       c.fields[0].missing = 1e20;
     }},
    {"a chunk of 2 numbers; expected 3", [](Catalogue& c) { c.fields[0].chunk = {3, 4}; }},
    {"chunk of 5 in dimension 2, whose size is 4",
     [](Catalogue& c) { c.fields[0].chunk = {1, 1, 5}; }},
    {"stream 'history', field 'ps': chunk of 9",
     [](Catalogue& c) { c.streams[0].fields[1].chunk = {9, 1}; }},
    {"deflate has levels 1 to 9, not 12",
     [](Catalogue& c) {
       c.fields[0].compression = Compression{Compression::Kind::kDeflate, 12};
     }},
    {"attribute '_FillValue': weir writes this attribute itself; give the number 'missing_value'",
     [](Catalogue& c) { c.fields[0].attributes.push_back({"_FillValue", 1.0}); }},
    {"all would have the name 'a.nc'", [](Catalogue& c) { c.streams[0].path = "a.nc"; }},
    {"do not differ so soon",
     [](Catalogue& c) {
       c.streams[0].path = "a_%Y%m%d.nc";
       c.streams[0].every_s = 3600;
     }},
    {"do not differ so soon",
     [](Catalogue& c) {
       c.streams[0].path = "a_%Y%m.nc";
       c.streams[0].every_s = 86400;
       c.streams[0].rotation = 30;
     }},
    {"each month (%Y%m), but the names from 'a_%m.nc'",
     [](Catalogue& c) {
       c.streams[0].path = "a_%m.nc";
       c.streams[0].every_s = 60;
       c.streams[0].rotation = 0;
       c.streams[0].period = Period::kMonth;
     }},
    {"needs every_s",
     [](Catalogue& c) {
       c.streams[0].path = "a_%Y%j.nc";
       c.streams[0].rotation = 0;
       c.streams[0].period = Period::kDay;
     }},
    {"expected one of both", [](Catalogue& c) { c.streams[0].period = Period::kDay; }},
    {"fine",
     [](Catalogue& c) {
       c.streams[0].path = "a_%Y%j.nc";
       c.streams[0].every_s = 60;
       c.streams[0].rotation = 0;
       c.streams[0].period = Period::kDay;
     }},
    {"every -1 steps", [](Catalogue& c) { c.streams[0].every_steps = -1; }},
    {"stream 'history': path 'x_%q'", [](Catalogue& c) { c.streams[0].path = "x_%q"; }},
    {"field 'ps' is in the stream twice, with one operation",
     [](Catalogue& c) { c.streams[0].fields.push_back({1, WEIR_MEAN, {}, {}, {}}); }},
    {"with two operations (mean, maximum) and one name; give one another name",
     [](Catalogue& c) { c.streams[0].fields.push_back({1, WEIR_MAXIMUM, {}, {}, {}}); }},
    {"fine",
     [](Catalogue& c) {
       c.streams[0].fields.push_back({1, WEIR_MAXIMUM, {}, {}, {}, {}, "psmax"});
     }},
    {"two fields are called 'ps' in its files",
     [](Catalogue& c) { c.streams[0].fields[0].name = "ps"; }},
    {"name in files of 'p s': the name has ' ' in it",
     [](Catalogue& c) { c.streams[0].fields[1].name = "p s"; }},
    {"fine",
     [](Catalogue& c) {
       c.streams[0].format = "grib2";
       c.streams[0].fields.push_back({1, WEIR_MAXIMUM, {}, {}, {}});
     }},
    {"field 'ps' is in the stream twice, with one operation",
     [](Catalogue& c) {
       c.streams[0].format = "grib2";
       c.streams[0].fields.push_back({1, WEIR_MEAN, {}, {}, {}, {}, "ps2"});
     }},
    {"writes to the same path",
     [](Catalogue& c) {
       c.streams.push_back(c.streams[0]);
       c.streams[1].name = "other";
     }},
    {"stream 'history': its field is none of this context's",
     [](Catalogue& c) { c.streams[0].fields[0].field = 7; }},
    {"field 't': its axis is none of this context's",
     [](Catalogue& c) { c.fields[0].axes = {3}; }},
    {"grid_mapping 'crs' names neither a grid mapping nor a field",
     [](Catalogue& c) { c.fields[0].attributes.push_back({"grid_mapping", "crs"}); }},
    {"fine",
     [](Catalogue& c) { c.fields[0].attributes.push_back({"grid_mapping", "ps: lon lat"}); }},
    {"fine",
     [](Catalogue& c) {
       c.grids[0].mapping.name = "crs";
       c.fields[0].attributes.push_back({"grid_mapping", "crs: lon lat"});
     }},
    {"grid_mapping 'crs: lon lat two: y x' names neither",
     [](Catalogue& c) {
       c.grids[0].mapping.name = "crs";
       c.fields[0].attributes.push_back({"grid_mapping", "crs: lon lat two: y x"});
     }},
    {"grid_mapping '' names neither",
     [](Catalogue& c) { c.fields[0].attributes.push_back({"grid_mapping", ""}); }},
    {"grid 'atmosphere', grid mapping 'ps': there is a field",
     [](Catalogue& c) { c.grids[0].mapping.name = "ps"; }},
    {"grid mapping 'level': there is an axis",
     [](Catalogue& c) { c.grids[0].mapping.name = "level"; }},
    {"grid mapping 'time': weir writes", [](Catalogue& c) { c.grids[0].mapping.name = "time"; }},
    {"grid mapping '2d': the name begins", [](Catalogue& c) { c.grids[0].mapping.name = "2d"; }},
    {"x and y of a plane are no longitudes",
     [](Catalogue& c) {
       c.grids[0].kind = GridKind::kPlane;
       c.grids[0].mapping = {"crs", {{"grid_mapping_name", "latitude_longitude"}}};
     }},
    {"grid mapping 'crs': its attributes differ between grids 'other' and 'atmosphere'",
     [](Catalogue& c) {
       c.grids[0].mapping.name = "crs";
       c.grids.push_back(c.grids[0]);
       c.grids[1].name = "other";
       c.grids[1].mapping.attributes = {{"earth_radius", 6371229.0}};
     }},
    {"field 't': scale_factor and add_offset pack",
     [](Catalogue& c) { c.fields[0].attributes.push_back({"scale_factor", 0.5}); }},
    {"field 't': scale_factor is 0; expected",
     [](Catalogue& c) { c.fields[0].attributes.push_back({"scale_factor", 0.0}); }},
    {"fine",
     [](Catalogue& c) {
       c.fields[0].attributes.push_back({"add_offset", 0.0});
       c.fields[0].file_type = WEIR_INT8;
     }},
    {"reference of time: date '2001-02-29'", [](Catalogue& c) { c.reference = "2001-02-29"; }},
    {"more elements than can be counted",
     [](Catalogue& c) {
       c.grids[0].nx = int64_t{1} << 55;
       c.grids[0].ny = 2;
       c.axes[0].values.resize(16);
     }},
};

TEST(check, each_mistake_is_named_with_its_object) {

  for (const Case& one : kMistakes)
    EXPECT_NE(reported(one.change).find(one.says), std::string::npos)
        << one.says << "\n  but: " << reported(one.change);
}

TEST(check, what_is_legal_but_bad_is_a_warning) {
  Catalogue c = small_catalogue();
  c.fields[1].attributes.clear();
  std::vector<std::string> warnings;
  ASSERT_TRUE(check_catalogue(c, &warnings).ok());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("field 'ps' has no units"), std::string::npos);
}

TEST(schedule, multiples_of_seconds_survive_the_rounding_of_a_models_clock) {
  Stream s = small_catalogue().streams[0];
  s.every_s = 900;
  int due = 0;
  double time = 0;
  for (int step = 0; step <= 36000; step++, time += 0.1)
    due += is_due(s, step ? std::optional(time - 0.1) : std::nullopt, time, step);
  EXPECT_EQ(due, 5);  // 0, 900, ..., 3600
  EXPECT_FALSE(is_due(s, {}, 901, 0));
}

TEST(schedule, steps_count_from_0) {
  Stream s = small_catalogue().streams[0];
  s.every_steps = 3;
  std::vector<int> due;
  for (int step = 0; step < 8; step++) {
    if (is_due(s, {}, step * 17.3, step)) due.push_back(step);
  }
  EXPECT_EQ(due, (std::vector<int>{0, 3, 6}));
  s.fields.clear();
  EXPECT_FALSE(is_due(s, {}, 0, 0));
}

TEST(schedule, steps_that_do_not_divide_the_interval_are_due_at_or_after_each_multiple) {
  Stream s = small_catalogue().streams[0];
  s.every_s = 3600;
  std::vector<double> due;
  for (int step = -20; step < 40; step++) {
    if (is_due(s, step > -20 ? std::optional(420.0 * (step - 1)) : std::nullopt, 420.0 * step,
               step + 20))
      due.push_back(420.0 * step);
  }
  EXPECT_EQ(due, (std::vector<double>{-7140, -3360, 0, 3780, 7560, 10920, 14700}));
  EXPECT_TRUE(is_due(s, 100, 9000, 1));   // a step over several multiples has one frame
  EXPECT_FALSE(is_due(s, 3780, 7199, 1));
}

TEST(text, words_of_messages) {
  EXPECT_EQ(quoted("a\nb"), "'a\\x0ab'");
  // 199 bytes, and a letter of two: it is left out whole
  EXPECT_EQ(quoted(std::string(199, 'a') + "\u00e4b"), "'" + std::string(199, 'a') + "...'");
  EXPECT_EQ(quoted(std::string(198, 'a') + "\u00e4b"), "'" + std::string(198, 'a') + "\u00e4...'");
  EXPECT_EQ(quoted(std::string(198, 'a') + "\U0001f600"), "'" + std::string(198, 'a') + "...'");
  EXPECT_EQ(quoted(std::string(300, '\x80')).size(), 205u);  // no UTF-8
  EXPECT_EQ(one_of({"a", "b", "c"}), "a, b or c");
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(did_you_mean("group", {"groups", "mode"}), "; did you mean 'groups'?");
  EXPECT_EQ(did_you_mean("zzz", {"groups", "mode"}), "");
}

}  // namespace
}  // namespace weir::output
