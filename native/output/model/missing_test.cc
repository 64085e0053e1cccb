// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "output/model/check.h"
#include "output/model/codec.h"
#include "output/model/sample.h"

namespace weir::output {
namespace {

std::string reported(Type type, Type file_type, const Number& missing) {
  Catalogue c = small_catalogue();
  c.fields[0].type = type;
  c.fields[0].file_type = file_type;
  c.fields[0].missing = missing;
  const Status status = check_field(c, c.fields[0]);
  return status.ok() ? "fine" : status.message();
}

std::string in_files(const std::string& what) {
  return what + "; if the field is packed, set scale_factor and add_offset before missing_value";
}

TEST(missing, a_value_that_a_type_cannot_hold_is_refused) {
  EXPECT_EQ(
      reported(WEIR_FLOAT64, WEIR_FLOAT32, 1e300),
      in_files(
          "field 't': missing_value 1e+300 is no number of the field's type in files, float32"));
  EXPECT_EQ(reported(WEIR_FLOAT32, WEIR_FLOAT64, 1e300),
            "field 't': missing_value 1e+300 is no number of the field's type in memory, float32");
  EXPECT_EQ(
      reported(WEIR_INT8, WEIR_INT8, 128),
      in_files("field 't': missing_value 128 is no number of the field's type in files, int8"));
  EXPECT_EQ(
      reported(WEIR_INT32, WEIR_INT32, 0.5),
      in_files("field 't': missing_value 0.5 is no number of the field's type in files, int32"));
  EXPECT_EQ(reported(WEIR_INT64, WEIR_INT64, 9223372036854775808.0),
            in_files("field 't': missing_value 9223372036854775808 is no number of the field's "
                     "type in files, int64"));
  EXPECT_NE(reported(WEIR_FLOAT64, WEIR_INT16, std::numeric_limits<double>::quiet_NaN()), "fine");
}

TEST(missing, every_number_that_the_types_hold_is_taken) {
  EXPECT_EQ(reported(WEIR_FLOAT64, WEIR_FLOAT64, 1e300), "fine");
  EXPECT_EQ(reported(WEIR_FLOAT32, WEIR_FLOAT32, 1e20), "fine");
  EXPECT_EQ(reported(WEIR_FLOAT32, WEIR_FLOAT32, std::numeric_limits<double>::quiet_NaN()), "fine");
  EXPECT_EQ(reported(WEIR_INT8, WEIR_INT8, -128), "fine");
  EXPECT_EQ(reported(WEIR_INT64, WEIR_INT64, Number::exactly(std::numeric_limits<int64_t>::max())),
            "fine");
}

TEST(missing, attributes_of_the_fields_own_type_are_numbers_of_it) {
  Catalogue c = small_catalogue();
  const auto reported = [&c](const char* name, double value) {
    c.fields[0].type = c.fields[0].file_type = WEIR_INT16;
    c.fields[0].missing.reset();
    c.fields[0].attributes = {{"units", "1"}, {name, value}};
    const Status status = check_field(c, c.fields[0]);
    return status.ok() ? "fine" : status.message();
  };
  EXPECT_EQ(reported("valid_max", 1e10),
            "field 't': valid_max 1e+10 is no number of the field's type in files, int16");
  EXPECT_EQ(reported("valid_max", 32767), "fine");
  EXPECT_EQ(reported("scale", 1e10), "fine");
}

TEST(missing, integers_travel_with_all_their_bits) {
  Catalogue c = small_catalogue();
  c.fields[0].missing = Number::exactly(std::numeric_limits<int64_t>::max() - 1);
  const Result<Catalogue> back = decode_catalogue(encode_catalogue(c));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ((*back).fields[0].missing->as<int64_t>(), std::numeric_limits<int64_t>::max() - 1);
  EXPECT_TRUE(Number(3.0).is_whole && !Number(3.5).is_whole);
  EXPECT_EQ(Number(-9223372036854775808.0).whole, std::numeric_limits<int64_t>::min());
}

}  // namespace
}  // namespace weir::output
