// SPDX-License-Identifier: Apache-2.0
#include "grib.h"

#include <eccodes.h>

#include <cstring>
#include <string>

#include "output/writer/phase.h"

namespace echam {
namespace {

using weir::output::Status;

constexpr int kNumbers = 200;  // parameters of a category

struct Long {
  const char* key;
  long value;
};

Status failed(const char* what, int code) {
  return {WEIR_E_FORMAT, std::string("ecCodes, ") + what + ": " + codes_get_error_message(code)};
}

Status set(grib_handle* message, std::initializer_list<Long> all) {
  for (const Long& one : all) {
    if (const int code = codes_set_long(message, one.key, one.value)) return failed(one.key, code);
  }
  return {};
}

}  // namespace

void Encoder::Release::operator()(grib_handle* handle) const { codes_handle_delete(handle); }

Status Encoder::make(const Grid& grid, int bits, const char* packing) {
  message_.reset(codes_grib_handle_new_from_samples(nullptr, "regular_ll_sfc_grib2"));
  grib_handle* const message = message_.get();
  if (message == nullptr)
    return {WEIR_E_FORMAT, "ecCodes has no sample regular_ll_sfc_grib2: install its samples"};
  const auto nlon = static_cast<long>(grid.nlon), nlat = static_cast<long>(grid.nlat);
  WEIR_TRY(set(message, {{"Ni", nlon}, {"Nj", nlat}}));
  const double dx = 360.0 / static_cast<double>(grid.nlon);
  const double dy = 180.0 / static_cast<double>(grid.nlat);
  const struct {
    const char* key;
    double value;
  } places[] = {
      {"latitudeOfFirstGridPointInDegrees", 90 - dy / 2},
      {"latitudeOfLastGridPointInDegrees", dy / 2 - 90},
      {"longitudeOfFirstGridPointInDegrees", 0},
      {"longitudeOfLastGridPointInDegrees", 360 - dx},
      {"iDirectionIncrementInDegrees", dx},
      {"jDirectionIncrementInDegrees", dy},
  };
  for (const auto& [key, value] : places) {
    if (const int code = codes_set_double(message, key, value)) return failed(key, code);
  }
  size_t length = std::strlen("isobaricInhPa");
  if (const int code = codes_set_string(message, "typeOfLevel", "isobaricInhPa", &length))
    return failed("typeOfLevel", code);
  // A packing takes its place when there are values.
  const std::vector<double> values(static_cast<size_t>(grid.points()), 1.0);
  if (const int code = codes_set_double_array(message, "values", values.data(), values.size()))
    return failed("values", code);
  length = std::strlen(packing);
  if (const int code = codes_set_string(message, "packingType", packing, &length))
    return failed(packing, code);
  return set(message, {{"bitsPerValue", bits}});
}

weir::output::Result<std::span<const char>> Encoder::encode(int step, int variable, int level,
                                                            std::span<const double> values) {
  const weir::output::writer::Phase phase("encode");
  WEIR_TRY(set(message_.get(), {{"parameterCategory", variable / kNumbers},
                                {"parameterNumber", variable % kNumbers},
                                {"level", level + 1},
                                {"forecastTime", step}}));
  if (const int code =
          codes_set_double_array(message_.get(), "values", values.data(), values.size()))
    return failed("values", code);
  const void* bytes = nullptr;
  size_t length = 0;
  if (const int code = codes_get_message(message_.get(), &bytes, &length))
    return failed("the message", code);
  return std::span(static_cast<const char*>(bytes), length);
}

}  // namespace echam
