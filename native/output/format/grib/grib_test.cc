// SPDX-License-Identifier: Apache-2.0
// Messages beside those that ecCodes makes of the same values.
#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "output/format/grib/bytes.h"
#include "output/format/grib/clock.h"
#include "output/format/grib/encoder.h"
#include "output/format/grib/scan.h"
#include "output/format/written.h"
#include "output/model/text.h"
#include "output/model/units.h"

namespace weir::output::grib {
namespace {

constexpr int64_t kColumns = 36, kRows = 17, kPoints = kColumns * kRows;

FileDescription globe(Type type, const FormatKeys& keys) {
  FileDescription d;
  d.dimensions = {{"lat", kRows}, {"lon", kColumns}, {"time", 0}};
  d.time = 2;
  Variable lat, lon, field;
  lat.name = "lat";
  lat.dimensions = {0};
  lat.attributes = {{"standard_name", "latitude"}};
  for (int i = 0; i < kRows; i++) lat.values.push_back(80 - i * 10);
  lon.name = "lon";
  lon.dimensions = {1};
  lon.attributes = {{"standard_name", "longitude"}};
  for (int i = 0; i < kColumns; i++) lon.values.push_back(i * 10);
  field.name = "sp";
  field.type = type;
  field.dimensions = {0, 1};
  field.over_time = true;
  field.fill = -9999;
  field.keys = keys;
  d.variables = {lat, lon, field};
  return d;
}

std::unique_ptr<Encoder> encoder(Type type, const FormatKeys& keys) {
  Result<Plan> plan = plan_of(globe(type, keys), 2, 2);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  Result<std::unique_ptr<Encoder>> made = Encoder::make(std::move(*plan));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(*made) : nullptr;
}

std::vector<double> decoded(const Bytes& message) {
  std::vector<double> values(kPoints);
  Result<Handle> handle = Handle::from_bytes(message);
  EXPECT_TRUE(handle.ok()) << handle.status().message();
  if (handle.ok()) {
    EXPECT_TRUE(handle->values(values.data(), values.size()).ok());
  }
  return values;
}

struct Case {
  double offset, width;
  int missing_every;  // 0: none is
};
constexpr Case kCases[] = {{0, 1, 0},        {273.15, 60, 0},  {-1e5, 3e5, 7},   {1e-6, 1e-9, 0},
                           {101325, 1e4, 3}, {-40, 0, 0},      {0, 65535, 0},    {1e20, 3e22, 5},
                           {0.1, 1e-12, 2},  {-1, 2, 1}};

template <typename T>
void compare(Type type, const char* packing, int bits, const Case& c, unsigned seed) {
  SCOPED_TRACE(std::string(packing) + ", " + std::to_string(bits) + " bits, from " +
               std::to_string(c.offset) + ", width " + std::to_string(c.width) + ", seed " +
               std::to_string(seed));
  FormatKeys keys = {{"packingType", std::string(packing), ""},
                     {"bitsPerValue", static_cast<double>(bits), ""}};
  auto made = encoder(type, keys);
  ASSERT_TRUE(made);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> part(0, 1);
  std::vector<T> values(kPoints);
  for (size_t i = 0; i < values.size(); i++) {
    values[i] = static_cast<T>(c.offset + c.width * part(random));
    if (c.missing_every > 0 && i % static_cast<size_t>(c.missing_every) == 0)
      values[i] = i % 2 == 0 ? static_cast<T>(-9999) : static_cast<T>(NAN);
  }
  Bytes own, library;
  Scratch scratch;
  ASSERT_TRUE(made->encode(0, values.data(), &scratch, &own).ok());
  const Status by_library = made->encode_by_library(0, values.data(), &scratch, &library);
  ASSERT_TRUE(by_library.ok()) << by_library.message();
  EXPECT_EQ(decoded(own), decoded(library));
  EXPECT_TRUE(own == library);
}

TEST(grib, packed_messages_are_those_of_ecCodes) {
  unsigned seed = 20260401;
  for (const char* packing : {"grid_simple", "grid_ccsds"}) {
    for (int bits : {1, 7, 8, 11, 12, 16, 20, 24}) {
      for (const Case& c : kCases) {
        compare<float>(WEIR_FLOAT32, packing, bits, c, seed++);
        compare<double>(WEIR_FLOAT64, packing, bits, c, seed++);
      }
    }
  }
}

// Values with the shapes for which the code has ways of its own: noise, small steps, blocks that
// are all the same (short and long runs of them), rare spikes.
std::vector<float> shaped(int shape, int bits, std::mt19937& random) {
  const auto most = static_cast<uint32_t>((uint64_t{1} << bits) - 1);
  std::vector<float> values(kPoints);
  uint32_t now = most / 2;
  for (float& v : values) {
    const auto chance = static_cast<uint32_t>(random() % 1000);
    if (shape == 0) now = static_cast<uint32_t>(random()) & most;
    if (shape == 1) now = std::min(most, now + chance % 4 - std::min(now, 2u));
    if (shape == 2 && chance < 30) now = static_cast<uint32_t>(random()) & most;
    if (shape == 3 && chance < 3) now ^= 1;
    if (shape == 4) now = chance < 50 ? chance * 7919 & most : most / 3 + chance % 2;
    v = static_cast<float>(now);
  }
  values[0] = 0, values[1] = static_cast<float>(most);  // a step is 1
  return values;
}

TEST(grib, the_code_of_ccsds_packing_is_that_of_libaec) {
  std::mt19937 random(20261126);
  for (const int bits : {1, 2, 5, 8, 9, 12, 16, 17, 20, 24}) {
    for (const double block : {8, 16, 32, 64}) {
      for (const double interval : {1, 3, 70, 128}) {
        auto made = encoder(WEIR_FLOAT32, {{"packingType", std::string("grid_ccsds"), ""},
                                           {"bitsPerValue", static_cast<double>(bits), ""},
                                           {"ccsdsBlockSize", block, ""},
                                           {"ccsdsRsi", interval, ""}});
        ASSERT_TRUE(made);
        for (int shape = 0; shape < 5; shape++) {
          const std::vector<float> values = shaped(shape, bits, random);
          Bytes own, library;
          Scratch scratch;
          ASSERT_TRUE(made->encode(0, values.data(), &scratch, &own).ok());
          ASSERT_TRUE(made->encode_by_library(0, values.data(), &scratch, &library).ok());
          EXPECT_TRUE(own == library) << bits << " bits, blocks of " << block << ", interval "
                                      << interval << ", shape " << shape;
          if (shape > 0) continue;
          EXPECT_EQ(decoded(own), decoded(library));
        }
      }
    }
  }
}

TEST(grib, a_constant_field_of_edition_1_in_second_order_is_a_simple_message) {
  Result<Plan> plan = plan_of(
      globe(WEIR_FLOAT32, {{"packingType", std::string("grid_second_order"), ""}}), 2, 1);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  Result<std::unique_ptr<Encoder>> made = Encoder::make(std::move(*plan));
  ASSERT_TRUE(made.ok()) << made.status().message();
  Scratch scratch;
  for (const float value : {7.0f, NAN}) {
    Bytes message;
    std::vector<float> values(kPoints, value);
    const Status status = (*made)->encode(0, values.data(), &scratch, &message);
    ASSERT_TRUE(status.ok()) << status.message();
    for (double back : decoded(message)) EXPECT_EQ(back, value == value ? 7.0 : 9999.0);
    for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<float>(i % 50);
    message.clear();
    ASSERT_TRUE((*made)->encode(0, values.data(), &scratch, &message).ok());
    Result<Handle> handle = Handle::from_bytes(message);
    Result<std::string> type = handle->text("packingType");
    EXPECT_EQ(type.ok() ? *type : "", "grid_second_order");
  }
}

TEST(grib, packings_and_bits_that_the_library_cannot_write_are_an_error) {
  const auto says = [](int edition, const FormatKey& key) {
    Result<Plan> plan = plan_of(globe(WEIR_FLOAT32, {key}), 2, edition);
    return plan.ok() ? std::string() : plan.status().message();
  };
  const auto packing = [](const char* type) {
    return FormatKey{"packingType", type, "o.toml:4:2"};
  };
  for (int edition : {1, 2}) {
    EXPECT_EQ(says(edition, packing("grid_png"))
                  .rfind("o.toml:4:2: field 'sp': packingType 'grid_png' is not written", 0),
              0u);
    for (const double bits : {0.0, 33.0, -1.0, 64.0, 2.5})
      EXPECT_NE(says(edition, {"bitsPerValue", bits, ""}).find("number from 1 to 32"),
                std::string::npos);
    EXPECT_EQ(says(edition, {"bitsPerValue", 32.0, ""}), "");
  }
  for (int edition : {1, 2}) {
    const std::string unknown = says(edition, packing("grid_simpel"));
    EXPECT_NE(unknown.find("for a grid; expected grid_simple, "), std::string::npos) << unknown;
    EXPECT_NE(unknown.find("did you mean 'grid_simple'?"), std::string::npos) << unknown;
    EXPECT_NE(says(edition, packing("spectral_complex")).find("is not written in edition"),
              std::string::npos);
    EXPECT_EQ(says(edition, packing("grid_second_order_SPD1")), "");
  }
  // In edition 1 they would become simple.
  for (const char* type : {"grid_jpeg", "grid_ccsds", "grid_simple_log_preprocessing"}) {
    EXPECT_NE(says(1, packing(type)).find("is not written in edition 1 of GRIB"),
              std::string::npos)
        << type;
    EXPECT_EQ(says(2, packing(type)), "");
  }
}

// What was encoded before leaves no trace, whoever encodes it.
TEST(grib, a_message_depends_on_its_own_values_alone) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> part(200, 300);
  for (const char* packing : {"grid_second_order", "grid_ieee", "grid_ccsds", "grid_simple"}) {
    auto made = encoder(WEIR_FLOAT32, {{"packingType", std::string(packing), ""}});
    auto again = encoder(WEIR_FLOAT32, {{"packingType", std::string(packing), ""}});
    ASSERT_TRUE(made && again);
    Scratch used;
    for (int record = 0; record < 8; record++) {
      std::vector<float> values(kPoints);
      for (float& v : values) v = record == 3 ? 7.0f : part(random);
      if (record == 5) values[11] = NAN;
      Scratch fresh;
      Bytes one, other;
      const Status status = made->encode(0, values.data(), &used, &one);
      ASSERT_TRUE(status.ok()) << status.message();
      if (record % 2 == 0) continue;
      ASSERT_TRUE(again->encode(0, values.data(), &fresh, &other).ok());
      EXPECT_TRUE(one == other) << packing << ", record " << record;
      const std::vector<double> back = decoded(one);
      for (size_t i = 0; i < values.size(); i++) {
        if (values[i] == values[i]) {
          EXPECT_NEAR(back[i], values[i], 0.002) << packing;
        }
      }
    }
  }
}

TEST(grib, calendars_whose_days_would_be_read_as_others_are_an_error) {
  const auto says = [](const char* calendar) {
    FileDescription d = globe(WEIR_FLOAT32, {});
    Variable time;
    time.name = "time";
    time.over_time = true;
    time.attributes = {{"units", "seconds since 1900-02-28 00:00:00"}, {"calendar", calendar}};
    d.variables.push_back(time);
    const Result<Clock> clock = Clock::of(d);
    return clock.ok() ? std::string() : clock.status().message();
  };
  for (const char* calendar : {"standard", "gregorian", "proleptic_gregorian", "noleap", "365_day"})
    EXPECT_EQ(says(calendar), "");
  EXPECT_NE(says("360_day").find("'360_day' has a 30 February, "), std::string::npos);
  for (const char* calendar : {"all_leap", "366_day"}) {
    EXPECT_NE(says(calendar).find("has a 29 February in each year, "), std::string::npos);
    EXPECT_EQ(says(calendar).find("30 February"), std::string::npos);
  }
  EXPECT_NE(says("julian").find("'julian' has other dates than GRIB, "), std::string::npos);
}

TEST(grib, steps_of_a_calendar_without_29_February_lead_to_its_dates) {
  FileDescription d = globe(WEIR_FLOAT32, {});
  Variable time;
  time.name = "time";
  time.attributes = {{"units", "seconds since 2000-01-01 00:00:00"}, {"calendar", "noleap"}};
  d.variables.push_back(time);
  const Result<Clock> clock = Clock::of(d);
  ASSERT_TRUE(clock.ok());
  constexpr double kDay = 86400;
  TimePlaces places;
  places.reference = 0, places.unit = 10, places.step = 12;
  std::vector<char> message(64);
  // Day 60 of such a year is 2 March, 61 days after 1 January 2000 as readers count.
  const Moment moment{60 * kDay, 60 * kDay, false};
  ASSERT_TRUE(put_times(message.data(), places, *clock, moment, true).ok());
  EXPECT_EQ(take_number(message.data() + places.step, 4), 61u * 24);
  EXPECT_EQ(take_times(message.data(), places, *clock)->time_s, moment.time_s);
  // An interval from 28 February to 1 March: two days.
  places.end = 20, places.length_unit = 30, places.length = 32;
  const Moment interval{59 * kDay, 58 * kDay, true};
  ASSERT_TRUE(put_times(message.data(), places, *clock, interval, false).ok());
  EXPECT_EQ(take_number(message.data() + places.step, 4), 0u);
  EXPECT_EQ(take_number(message.data() + places.length, 4), 2u * 24);
  EXPECT_EQ(message[places.end + 2], 3);
  EXPECT_EQ(message[places.end + 3], 1);
  Result<Moment> found = take_times(message.data(), places, *clock);
  EXPECT_EQ(found->begin_s, interval.begin_s);
  EXPECT_EQ(found->time_s, interval.time_s);
  EXPECT_EQ(put_times(message.data(), places, *clock, {4e11, 4e11, false}, true).code(),
            WEIR_E_VALUE);
}

TEST(grib, longitudes_and_latitudes_are_messages_where_a_field_needs_them) {
  FileDescription d;
  d.dimensions = {{"cell", 208}, {"time", 0}};
  d.time = 1;
  Variable lon, named, other;
  lon.name = "lon";
  lon.dimensions = {0};
  named.name = "sp", other.name = "skt";
  named.over_time = other.over_time = true;
  named.dimensions = other.dimensions = {0};
  named.attributes = {{"GRIB_gridName", "O4"}};
  d.variables = {lon, named};
  EXPECT_FALSE(is_field(d, 0, 2));
  d.variables.push_back(other);
  EXPECT_TRUE(is_field(d, 0, 2));
  EXPECT_FALSE(is_field(d, 0, 1));
  d.keys = {{"gridType", "unstructured_grid", ""}};
  EXPECT_TRUE(is_field(d, 0, 2));
  d.keys = {{"gridName", "O4", ""}};
  EXPECT_FALSE(is_field(d, 0, 2));
  EXPECT_TRUE(is_field(d, 1, 2) && is_field(d, 2, 2));
}

TEST(grib, units_of_another_parameter_are_an_error_and_those_of_the_same_are_not) {
  const auto with_units = [](const char* name, const char* units, const char* standard_name) {
    FileDescription d = globe(WEIR_FLOAT32, {});
    d.variables[2].name = name;
    if (units) d.variables[2].attributes.push_back({"units", units});
    if (standard_name) d.variables[2].attributes.push_back({"standard_name", standard_name});
    Result<Plan> plan = plan_of(d, 2, 2);
    EXPECT_TRUE(plan.ok());
    Result<std::unique_ptr<Encoder>> made = Encoder::make(std::move(*plan));
    return made.ok() ? std::string() : made.status().message();
  };
  EXPECT_EQ(with_units("sp", "Pa", nullptr), "");
  EXPECT_EQ(with_units("sp", nullptr, nullptr), "");
  EXPECT_EQ(with_units("sp", "N m-2", nullptr), "");
  EXPECT_EQ(with_units("prate", "kg m-2 s-1", nullptr), "");
  EXPECT_EQ(with_units("ta", "K", "air_temperature"), "");
  EXPECT_NE(with_units("sp", "furlong", nullptr)
                .find("its units are 'furlong', which weir does not know, those of parameter 134"),
            std::string::npos);
  EXPECT_EQ(with_units("sp", " PA", nullptr), "");
  for (const char* units : {"degrees_C", "°C", "C", "F", "degF", "celsius"}) {
    EXPECT_NE(with_units("t", units, "air_temperature").find("weir does not convert values"),
              std::string::npos)
        << units;
  }
  for (const char* units : {"kPa", "atm", "mb", "dPa"})
    EXPECT_NE(with_units("sp", units, nullptr).find("are 'Pa'"), std::string::npos) << units;
  for (const char* units : {"knots", "kt", "mph"})
    EXPECT_NE(with_units("u", units, nullptr).find("are 'm s**-1'"), std::string::npos) << units;
  EXPECT_NE(with_units("q", "ppm", nullptr).find("are 'kg kg**-1'"), std::string::npos);
  EXPECT_EQ(with_units("u", "metres/second", nullptr), "");
  EXPECT_NE(with_units("sp", "hPa", nullptr)
                .find("field 'sp': its units are 'hPa', those of parameter 134 ('Surface "
                      "pressure') are 'Pa'; weir does not convert values"),
            std::string::npos);
  EXPECT_NE(with_units("t", "degC", "air_temperature").find("its units are 'degC'"),
            std::string::npos);
  EXPECT_NE(with_units("skt", "kg m-2", nullptr).find("are 'K'"), std::string::npos);
  EXPECT_NE(with_units("ta", "K", nullptr)
                .find("('Temperature anomaly') in ecCodes, and air_temperature in CMIP; set its "
                      "standard_name"),
            std::string::npos)
      << with_units("ta", "K", nullptr);
}

struct Named {
  const char *name, *units, *standard_name;
};

// "paramId typeOfLevel level", or the error.
std::string parameter(int edition, const Named& named, const FormatKeys& keys = {}) {
  FileDescription d = globe(WEIR_FLOAT32, keys);
  d.variables[2].name = named.name;
  d.variables[2].attributes = {{"units", named.units}, {"standard_name", named.standard_name}};
  if (*named.standard_name == '\0') d.variables[2].attributes.pop_back();
  Result<Plan> plan = plan_of(d, 2, edition);
  if (!plan.ok()) return plan.status().message();
  Result<std::unique_ptr<Encoder>> made = Encoder::make(std::move(*plan));
  if (!made.ok()) return made.status().message();
  Bytes message;
  Scratch scratch;
  EXPECT_TRUE((*made)->encode(0, std::vector<float>(kPoints).data(), &scratch, &message).ok());
  Result<Handle> handle = Handle::from_bytes(message);
  std::string text;
  for (const char* key : {"paramId", "typeOfLevel", "level"}) {
    Result<std::string> value = handle->text(key);
    text += (text.empty() ? "" : " ") + (value.ok() ? *value : "none");
  }
  return text;
}

TEST(grib, names_near_the_surface_and_standard_names_become_the_quantity_that_they_are) {
  const FormatKeys high = {{"typeOfLevel", "isobaricInhPa", ""}, {"level", 500.0, ""}};
  for (const char* name : {"zg", "z"}) {
    const Named height = {name, "m", "geopotential_height"};
    for (int edition : {1, 2}) {
      EXPECT_EQ(parameter(edition, height, high), "156 isobaricInhPa 500");
      EXPECT_NE(parameter(edition, height).find("becomes parameter 228002 ('Orography'), which is "
                                                "the height of the ground; give typeOfLevel"),
                std::string::npos)
          << parameter(edition, height);
    }
  }
  for (int edition : {1, 2}) {
    const std::string where[] = {edition == 1 ? " surface 0" : " heightAboveGround 2",
                                 edition == 1 ? " surface 0" : " heightAboveGround 10"};
    EXPECT_EQ(parameter(edition, {"ts", "K", "surface_temperature"}), "235 surface 0");
    EXPECT_EQ(parameter(edition, {"tas", "K", "air_temperature"}), "167" + where[0]);
    EXPECT_EQ(parameter(edition, {"tas", "K", ""}), "167" + where[0]);
    EXPECT_EQ(parameter(edition, {"uas", "m s-1", "eastward_wind"}), "165" + where[1]);
  }
  EXPECT_EQ(parameter(2, {"tas", "K", "air_temperature"}, high), "130 isobaricInhPa 500");
  const Named snow = {"sd", "m", "lwe_thickness_of_surface_snow_amount"};
  EXPECT_NE(parameter(2, snow).find("depth of snow and not of its water; put it in kg m-2"),
            std::string::npos)
      << parameter(2, snow);
  EXPECT_EQ(parameter(2, snow, {{"paramId", 3066.0, ""}}), "3066 surface 0");
  EXPECT_EQ(parameter(1, snow), "141 surface 0");
  // Whoever gives the parameter knows words that weir does not.
  EXPECT_EQ(parameter(2, {"x", "furlong", ""}, {{"paramId", 134.0, ""}}), "134 surface 0");
}

TEST(grib, texts_of_units_are_compared_by_what_they_mean) {
  const struct {
    const char *a, *b;
    bool same;
  } cases[] = {{"kg m-2 s-1", "kg m**-2 s**-1", true}, {"m/s", "m s-1", true},
               {"m s^-1", "m.s-1", true},               {"W m-2", "J m**-2 s**-1", true},
               {"mm day-1", "kg m-2 s-1", false},       {"degC", "K", false},
               {"%", "(0 - 1)", false},                 {"1", "kg kg**-1", true},
               {"hPa", "Pa", false},                    {"100 Pa", "hPa", true},
               {"m", "m of water equivalent", true},    {"m2 s-2", "m**2 s**-2", true}};
  for (const auto& c : cases) {
    EXPECT_EQ(same_units(c.a, c.b), std::optional<bool>(c.same)) << c.a << " and " << c.b;
    EXPECT_EQ(same_units(c.b, c.a), std::optional<bool>(c.same)) << c.b << " and " << c.a;
  }
  EXPECT_EQ(same_units("Code table 4.201", "1"), std::nullopt);
  EXPECT_EQ(same_units("Code table 4.201", "Code table 4.201"), std::optional<bool>(true));
}

TEST(grib, infinite_values_are_an_error_that_names_the_field) {
  auto made = encoder(WEIR_FLOAT32, {});
  ASSERT_TRUE(made);
  std::vector<float> values(kPoints, 1);
  values[17] = INFINITY;
  Bytes message;
  Scratch scratch;
  const Status status = made->encode(0, values.data(), &scratch, &message);
  EXPECT_EQ(status.code(), WEIR_E_VALUE);
  EXPECT_NE(status.message().find("field 'sp': it has infinite values"), std::string::npos);
}

// ecCodes would write infinity (grid_ieee), or end the process.
TEST(grib, values_beyond_float32_are_an_error_that_names_the_largest) {
  const float most = std::numeric_limits<float>::max();
  for (const char* packing : {"grid_simple", "grid_ccsds", "grid_ieee", "grid_second_order"}) {
    SCOPED_TRACE(packing);
    auto made = encoder(WEIR_FLOAT64, {{"packingType", std::string(packing), ""}});
    ASSERT_TRUE(made);
    std::vector<double> values(kPoints, 1);
    Bytes message;
    Scratch scratch;
    for (const double beyond : {1e300, -1e300, 4e38, -4e38}) {
      values[17] = beyond;
      const Status status = made->encode(0, values.data(), &scratch, &message);
      EXPECT_EQ(status.code(), WEIR_E_VALUE);
      EXPECT_NE(status.message().find("field 'sp': it has the value " + number_text(beyond)),
                std::string::npos)
          << status.message();
      EXPECT_TRUE(message.empty());
    }
    values[17] = static_cast<double>(-most);
    values[18] = static_cast<double>(most);
    const Status status = made->encode(0, values.data(), &scratch, &message);
    ASSERT_TRUE(status.ok()) << status.message();
    const std::vector<double> back = decoded(message);
    EXPECT_NEAR(back[17] / values[17], 1, 1e-4);
    EXPECT_NEAR(back[18] / values[18], 1, 1e-4);
  }
}

TEST(grib, a_text_that_is_a_whole_number_is_one_where_ecCodes_has_no_such_text) {
  auto made = encoder(WEIR_FLOAT32, {{"discipline", std::string("0"), ""},
                                     {"parameterCategory", std::string("192"), ""},
                                     {"parameterNumber", std::string("200"), ""}});
  ASSERT_TRUE(made);
  const std::vector<float> values(kPoints, 1);
  Bytes message;
  Scratch scratch;
  ASSERT_TRUE(made->encode(0, values.data(), &scratch, &message).ok());
  Result<Handle> handle = Handle::from_bytes(message);
  ASSERT_TRUE(handle.ok());
  Result<int64_t> category = handle->whole("parameterCategory");
  Result<int64_t> number = handle->whole("parameterNumber");
  EXPECT_EQ(category.ok() ? *category : -1, 192);
  EXPECT_EQ(number.ok() ? *number : -1, 200);
}

TEST(grib, what_ecCodes_refuses_has_key_field_place_and_its_words) {
  Result<Plan> plan = plan_of(globe(WEIR_FLOAT32, {{"nonsense", 3.0, "o.toml:4:2"}}), 2, 2);
  ASSERT_TRUE(plan.ok());
  Result<std::unique_ptr<Encoder>> made = Encoder::make(std::move(*plan));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().message().rfind("o.toml:4:2: field 'sp': nonsense = 3: ecCodes: ", 0), 0u)
      << made.status().message();
}

TEST(grib, a_torn_last_message_is_left_out_and_garbage_is_refused) {
  output::Scratch scratch;
  const Written w = odd_file("grib2", scratch / "f", 1, 2);
  ASSERT_TRUE(w.status.ok()) << w.status.message();
  const auto size = std::filesystem::file_size(w.path);
  for (const uintmax_t cut : {1u, 30u, 200u}) {
    std::filesystem::copy_file(w.path, scratch / "cut",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(scratch / "cut", size - cut);
    Result<PosixFile> file = PosixFile::open(scratch / "cut", O_RDONLY);
    ASSERT_TRUE(file.ok());
    Result<std::vector<Message>> messages = scan(*file);
    ASSERT_TRUE(messages.ok());
    EXPECT_LT(messages->size(), 14u);
    EXPECT_GE(messages->size(), 11u);
  }
  Result<PosixFile> file = PosixFile::open(w.path, O_RDWR);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write_at("XXXX", 4, 0).ok());
  EXPECT_FALSE(scan(*file).ok());
}

TEST(grib, sections_that_are_too_short_or_not_in_order_are_none) {
  auto made = encoder(WEIR_FLOAT32, {});
  ASSERT_TRUE(made);
  const Bytes whole = **made->header(0);
  const auto sections = sections_of(whole.data(), std::ssize(whole));
  ASSERT_TRUE(sections);
  for (const size_t number : {1u, 3u, 4u, 5u}) {
    Bytes torn = whole;
    put_number(torn.data() + sections->at[number], 4, 5);
    EXPECT_FALSE(sections_of(torn.data(), std::ssize(torn))) << number;
    torn = whole;
    torn[static_cast<size_t>(sections->at[number]) + 4] = number == 5 ? 6 : 5;
    EXPECT_FALSE(sections_of(torn.data(), std::ssize(torn))) << number;
  }
}

TEST(grib, numbers_of_messages_have_sign_and_magnitude) {
  char bytes[4];
  for (const int64_t value : {0, 1, -1, 300, -32767, 32767}) {
    put_signed(bytes, 2, value);
    EXPECT_EQ(take_signed(bytes, 2), value);
  }
  put_signed(bytes, 2, -2);
  EXPECT_EQ(take_number(bytes, 2), 0x8002u);
}

}  // namespace
}  // namespace weir::output::grib
