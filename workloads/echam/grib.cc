// SPDX-License-Identifier: Apache-2.0
#include "grib.h"

#include <eccodes.h>

#include <cstring>

#include "output/format/grib/bytes.h"
#include "output/writer/phase.h"

namespace echam {
namespace {

namespace grib = weir::output::grib;
using weir::output::FormatKeys;
using weir::output::Result;
using weir::output::Status;
using weir::output::writer::Phase;

constexpr int kNumbers = 200;  // parameters of a category
constexpr const char* kSample = "regular_ll_sfc_grib";  // of ecCodes, without the edition
constexpr const char* kLevels = "isobaricInhPa";

// What all messages have, beside the packing.
FormatKeys grid_keys(const Grid& grid) {
  const auto nlon = static_cast<double>(grid.nlon), nlat = static_cast<double>(grid.nlat);
  const double dx = 360.0 / nlon, dy = 180.0 / nlat;
  return {{"Ni", nlon, ""},
          {"Nj", nlat, ""},
          {"latitudeOfFirstGridPointInDegrees", 90 - dy / 2, ""},
          {"latitudeOfLastGridPointInDegrees", dy / 2 - 90, ""},
          {"longitudeOfFirstGridPointInDegrees", 0.0, ""},
          {"longitudeOfLastGridPointInDegrees", 360 - dx, ""},
          {"iDirectionIncrementInDegrees", dx, ""},
          {"jDirectionIncrementInDegrees", dy, ""}};
}

FormatKeys parameter_keys(int variable) {
  return {{"parameterCategory", static_cast<double>(variable / kNumbers), ""},
          {"parameterNumber", static_cast<double>(variable % kNumbers), ""}};
}

class ByWeir : public Encoder {
 public:
  Status add(const EncoderOptions& options, const weir::output::writer::Variable& variable) {
    grib::Plan plan;
    plan.field = "variable " + std::to_string(variable.number);
    plan.points = options.grid.points();
    plan.type = WEIR_FLOAT64;
    plan.sample = kSample;
    plan.header = grid_keys(options.grid);
    const FormatKeys parameter = parameter_keys(variable.number);
    plan.header.insert(plan.header.end(), parameter.begin(), parameter.end());
    plan.rest = {{"typeOfLevel", std::string(kLevels), ""}};
    for (int level = 0; level < variable.records; ++level)
      plan.levels.push_back({{"level", level + 1.0, ""}});
    plan.packing = {{"packingType", options.packing, ""},
                    {"bitsPerValue", static_cast<double>(options.bits), ""}};
    plan.packs = options.packing == "grid_simple"  ? grib::Packing::kSimple
                 : options.packing == "grid_ccsds" ? grib::Packing::kCcsds
                                                   : grib::Packing::kOther;
    plan.bits = options.bits;
    auto made = grib::Encoder::make(std::move(plan));
    if (made.ok()) fields_[variable.number] = std::move(*made);
    return made.status();
  }

  Result<std::span<const char>> encode(int step, int variable, int level,
                                       std::span<const double> values) override {
    const Phase phase("encode");
    grib::Encoder& field = *fields_.at(variable);
    message_.clear();
    WEIR_TRY(field.encode(static_cast<size_t>(level), values.data(), &scratch_, &message_));
    grib::put_number(message_.data() + field.times().step, 4, static_cast<uint64_t>(step));
    return std::span<const char>(message_);
  }

 private:
  std::map<int, std::unique_ptr<grib::Encoder>> fields_;
  grib::Scratch scratch_;
  grib::Bytes message_;
};

Status failed(const char* what, int code) {
  return {WEIR_E_FORMAT, std::string("ecCodes, ") + what + ": " + codes_get_error_message(code)};
}

class ByEccodes : public Encoder {
 public:
  Status make(const EncoderOptions& options) {
    const std::string sample = std::string(kSample) + "2";
    message_.reset(codes_grib_handle_new_from_samples(nullptr, sample.c_str()));
    if (message_ == nullptr)
      return {WEIR_E_FORMAT, "ecCodes has no sample " + sample + ": install its samples"};
    WEIR_TRY(set_all(grid_keys(options.grid)));
    WEIR_TRY(set("typeOfLevel", kLevels));
    // A packing takes its place when there are values.
    const std::vector<double> values(static_cast<size_t>(options.grid.points()), 1.0);
    if (const int code =
            codes_set_double_array(message_.get(), "values", values.data(), values.size()))
      return failed("values", code);
    WEIR_TRY(set("packingType", options.packing));
    return set_all({{"bitsPerValue", static_cast<double>(options.bits), ""}});
  }

  Result<std::span<const char>> encode(int step, int variable, int level,
                                       std::span<const double> values) override {
    const Phase phase("encode");
    WEIR_TRY(set_all(parameter_keys(variable)));
    WEIR_TRY(set_all(
        {{"level", level + 1.0, ""}, {"forecastTime", static_cast<double>(step), ""}}));
    if (const int code =
            codes_set_double_array(message_.get(), "values", values.data(), values.size()))
      return failed("values", code);
    const void* bytes = nullptr;
    size_t length = 0;
    if (const int code = codes_get_message(message_.get(), &bytes, &length))
      return failed("the message", code);
    return std::span(static_cast<const char*>(bytes), length);
  }

 private:
  struct Release {
    void operator()(grib_handle* handle) const { codes_handle_delete(handle); }
  };

  Status set(const char* key, const std::string& value) {
    size_t length = value.size();
    const int code = codes_set_string(message_.get(), key, value.c_str(), &length);
    return code == 0 ? Status() : failed(value.c_str(), code);
  }

  // Whole numbers as such: as doubles ecCodes takes longer.
  Status set_all(const FormatKeys& keys) {
    for (const weir::output::FormatKey& key : keys) {
      const double value = std::get<double>(key.value);
      const auto whole = static_cast<long>(value);
      const int code = static_cast<double>(whole) == value
                           ? codes_set_long(message_.get(), key.name.c_str(), whole)
                           : codes_set_double(message_.get(), key.name.c_str(), value);
      if (code != 0) return failed(key.name.c_str(), code);
    }
    return {};
  }

  std::unique_ptr<grib_handle, Release> message_;
};

}  // namespace

Result<std::unique_ptr<Encoder>> Encoder::make(const std::string& name,
                                               const EncoderOptions& options,
                                               const Variables& variables) {
  if (name == "weir") {
    auto made = std::make_unique<ByWeir>();
    for (const auto& variable : variables) WEIR_TRY(made->add(options, variable));
    return Result<std::unique_ptr<Encoder>>(std::move(made));
  }
  if (name != "eccodes")
    return Status(WEIR_E_ARGUMENT, "unknown encoder " + name + ": expected weir or eccodes");
  auto made = std::make_unique<ByEccodes>();
  WEIR_TRY(made->make(options));
  return Result<std::unique_ptr<Encoder>>(std::move(made));
}

}  // namespace echam
