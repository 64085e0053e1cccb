// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/encoder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "output/core/trace.h"
#include "output/format/grib/bytes.h"
#include "output/format/grib/entropy.h"
#include "output/format/grib/grid.h"
#include "output/format/grib/names.h"
#include "output/model/text.h"
#include "output/model/units.h"
#include "output/reduce/information.h"
#include "output/reduce/rounding.h"

namespace weir::output::grib {
namespace {

// Octets of section 5 (templates 5.0 and 5.42), from its begin.
constexpr int kNumberOfValues = 5, kReference = 11, kBinary = 15, kBits = 19,
              kCcsdsFlags = 21, kCcsdsBlock = 22, kCcsdsInterval = 23;
// Flags of template 5.42. Two of them say how samples lay in memory, which is not in the code.
constexpr int kThreeBytes = 2, kMostSignificantFirst = 4, kPredicted = 8;

EntropyLayout entropy_layout(const char* section5, int bits) {
  return {bits, static_cast<int64_t>(take_number(section5 + kCcsdsBlock, 1)),
          static_cast<int64_t>(take_number(section5 + kCcsdsInterval, 2))};
}

// Whether CCSDS packing of this section is entropy.h's; else it is ecCodes'.
bool codes_itself(const char* section5, int bits) {
  const int flags = static_cast<unsigned char>(section5[kCcsdsFlags]);
  return (flags & ~(kThreeBytes | kMostSignificantFirst)) == kPredicted &&
         (bits == 0 || has_code(entropy_layout(section5, bits)));
}

void append_bytes(Bytes* to, const char* bytes, size_t count) {
  to->insert(to->end(), bytes, bytes + count);
}

void append_section(Bytes* to, int number, uint64_t bytes) {
  char head[5];
  put_number(head, 4, bytes);
  head[4] = static_cast<char>(number);
  append_bytes(to, head, sizeof head);
}

// "parameter 171130 ('Temperature anomaly')"
std::string parameter_of(const Handle& handle) {
  const Result<std::string> number = handle.text("paramId"), name = handle.text("name");
  return "parameter " + (number.ok() ? *number : "?") +
         (name.ok() ? " (" + quoted(*name) + ")" : "");
}

}  // namespace

Status Encoder::explain(const Status& status, const std::string& place) const {
  if (status.ok()) return status;
  return {status.code(), (place.empty() ? "" : place + ": ") + "field " + quoted(plan_.field) +
                             ": " + status.message()};
}

Status Encoder::set_all(Handle& handle, const FormatKeys& keys) const {
  for (const FormatKey& key : keys) {
    const Status set = key.name == "typeOfLevel" ? set_type_of_level(handle, key) : handle.set(key);
    WEIR_TRY(explain(set, key.place));
  }
  return {};
}

// ecCodes takes types of levels of a centre for another centre, too, and leaves the level as it is.
Status Encoder::set_type_of_level(Handle& handle, const FormatKey& key) const {
  const Result<std::string> before = handle.text(key.name);
  WEIR_TRY(handle.set(key));
  const Result<std::string> after = handle.text(key.name), centre = handle.text("centre");
  const std::string* type = std::get_if<std::string>(&key.value);
  if (!type || !before.ok() || !after.ok() || *after == *type || *after != *before) return {};
  return {WEIR_E_FORMAT, "typeOfLevel " + quoted(*type) + " is none of centre " +
                             (centre.ok() ? *centre : "?") + " in ecCodes, the level stays " +
                             quoted(*after) + "; give the centre that has it (grib = { centre = 7 "
                             "}, or attribute GRIB_centre)"};
}

// In edition 1 ecCodes has standard names for reading alone: edition 2 says which parameter one is
// on the field's kind of levels.
Status Encoder::set_standard_name(Handle& handle, const FormatKey& name) const {
  if (plan_.edition == 2) return handle.set(name);
  Result<Handle> other = Handle::from_sample("GRIB2");
  if (!other.ok()) return other.status();
  WEIR_TRY(other->set(name));
  for (const FormatKey& key : plan_.rest) {
    // One that edition 2 does not have decides nothing.
    if (key.name == "typeOfLevel" && !other->set(key).ok()) break;
  }
  Result<int64_t> number = other->whole("paramId");
  return number.ok() ? handle.set("paramId", *number) : number.status();
}

// The first of the names that ecCodes knows, and that is the quantity that the standard name says;
// else the first of those of which it knows no standard name, unless the name has another meaning
// where models get their names from.
Status Encoder::set_parameter(Handle& handle) const {
  if (plan_.parameters.empty()) return {};
  std::string tried;
  const FormatKey* vague = nullptr;
  const std::string& wanted = plan_.standard_name.empty() ? plan_.usual_name : plan_.standard_name;
  for (const FormatKey& key : plan_.parameters) {
    tried += (tried.empty() ? "" : ", ") + key.name + " " + value_text(key);
    if (key.name == "cfName") {
      if (set_standard_name(handle, key).ok()) return {};
      continue;
    }
    if (!handle.set(key).ok()) continue;
    if (key.name == "paramId") return {};
    Result<std::string> is = handle.text("cfName");
    const bool known = is.ok() && *is != "unknown";
    if (known && (wanted.empty() || *is == wanted)) return {};
    const bool may_be = !known || plan_.standard_name.empty();
    if (may_be && vague == nullptr) vague = &key;
  }
  constexpr const char* kGive =
      "; give paramId or shortName, or discipline, parameterCategory and parameterNumber, in the "
      "configuration (grib = { paramId = 130 }) or as attribute GRIB_paramId of the field";
  if (vague == nullptr) return wrong("ecCodes knows no parameter by " + tried + kGive);
  WEIR_TRY(explain(handle.set(*vague), ""));
  if (plan_.usual_name.empty()) return {};
  return wrong(quoted(plan_.field) + " is " + parameter_of(handle) + " in ecCodes, and " +
               plan_.usual_name + " in CMIP; set its standard_name" + kGive);
}

// weir does not convert values: in other units they would be read as other values. Minima of
// edition 1 have the time range indicator of maxima, and are read as these.
Status Encoder::check_parameter(const Handle& handle) const {
  Result<std::string> name = handle.text("name");
  if (plan_.of_minimum && !(name.ok() && name->starts_with("Minimum"))) {
    return wrong("edition 1 of GRIB cannot say that values of " + parameter_of(handle) +
                 " are minima, and they would be read as maxima; use format grib2, or give the "
                 "paramId of a parameter that is itself a minimum (202, at 2 m of temperature)");
  }
  Result<std::string> number = handle.text("paramId");
  const std::string other =
      number.ok() && !plan_.parameters.empty() ? not_the_same(plan_.standard_name, *number) : "";
  if (!other.empty()) {
    return wrong("its standard_name " + plan_.standard_name + " becomes " + parameter_of(handle) +
                 ", " + other + ", or give the paramId that is meant");
  }
  return check_units(handle);
}

Status Encoder::check_units(const Handle& handle) const {
  Result<std::string> units = handle.text("units");
  if (plan_.units.empty() || !units.ok()) return {};
  const std::optional<bool> same = same_units(plan_.units, *units);
  // Words that are not known are whoever's who gives the parameter.
  const bool given = plan_.parameters.empty();
  if (same.value_or(given || knows_units(plan_.units) || !knows_units(*units))) return {};
  return wrong("its units are " + quoted(plan_.units) +
               (same ? "" : ", which weir does not know") + ", those of " + parameter_of(handle) +
               " are " + quoted(*units) +
               "; weir does not convert values: put it in these units, or choose another "
               "parameter" + (same ? "" : ", or give paramId if they are the same"));
}

// The rows of a reduced Gaussian grid as a sample of ecCodes has them.
Status Encoder::add_named_grid() {
  if (plan_.named_grid.empty()) return {};
  Result<Handle> sample =
      Handle::from_sample("reduced_gg_pl_" + plan_.named_grid.substr(1) + "_grib2");
  if (!sample.ok()) return explain(sample.status(), "");
  Result<std::vector<int64_t>> rows = sample->wholes("pl");
  if (!rows.ok()) return explain(rows.status(), "");
  return add_reduced({rows->begin(), rows->end()}, &plan_);
}

Result<std::unique_ptr<Encoder>> Encoder::make(Plan plan) {
  std::unique_ptr<Encoder> encoder(new Encoder(std::move(plan)));
  Status made = encoder->add_named_grid();
  if (made.ok()) made = encoder->make_base();
  return made.ok() ? Result<std::unique_ptr<Encoder>>(std::move(encoder))
                   : Result<std::unique_ptr<Encoder>>(made);
}

Status Encoder::make_base() {
  WEIR_TRY(library_ready());
  Result<Handle> made = Handle::from_sample(plan_.sample + std::to_string(plan_.edition));
  if (!made.ok()) return made.status();
  Handle& handle = *made;
  // Samples of edition 1 and of spherical harmonics are ECMWF's.
  if (plan_.edition == 2 && plan_.sample != "GRIB")
    WEIR_TRY(explain(handle.set("deleteLocalDefinition", 1), ""));
  WEIR_TRY(set_all(handle, plan_.header));
  if (plan_.edition == 2) WEIR_TRY(explain(handle.set("numberOfDataPoints", plan_.points), ""));
  WEIR_TRY(set_parameter(handle));
  WEIR_TRY(set_all(handle, plan_.rest));
  WEIR_TRY(set_all(handle, plan_.levels[0]));
  WEIR_TRY(check_parameter(handle));
  times_ = TimePlaces::in(handle, plan_.edition);
  if (plan_.header_only) return keep_base(handle);
  // Packings that are ecCodes' keep their type only with values that are not all the same.
  std::vector<double> values(static_cast<size_t>(plan_.points), 0);
  for (size_t i = 0; i < values.size() && plan_.packs == Packing::kOther; i++)
    values[i] = static_cast<double>(i % 16);
  // Spherical harmonics of the sample would be packed again with another truncation.
  if (plan_.packs == Packing::kOther && plan_.sample == "GRIB")
    WEIR_TRY(explain(handle.set("bitsPerValue", 16), ""));
  WEIR_TRY(explain(handle.set_values(values.data(), values.size()), ""));
  WEIR_TRY(set_all(handle, plan_.packing));
  return keep_base(handle);
}

Status Encoder::keep_base(const Handle& handle) {
  Result<Bytes> bytes = handle.bytes();
  if (!bytes.ok()) return explain(bytes.status(), "");
  base_ = std::move(*bytes);
  headers_.resize(plan_.messages());
  return {};
}

int64_t Encoder::parameter() const {
  Result<Handle> handle = Handle::from_bytes(base_);
  const Result<int64_t> number = handle.ok() ? handle->whole("paramId") : Result<int64_t>(0);
  return number.ok() ? *number : 0;
}

Result<const Bytes*> Encoder::header(size_t level) {
  Bytes& header = headers_[level];
  if (!header.empty()) return &header;
  Bytes message = base_;
  if (level > 0) {
    Result<Handle> handle = Handle::from_bytes(base_);
    if (!handle.ok()) return handle.status();
    WEIR_TRY(set_all(*handle, plan_.levels[level]));
    Result<Bytes> bytes = handle->bytes();
    if (!bytes.ok()) return explain(bytes.status(), "");
    message = std::move(*bytes);
  }
  if (plan_.edition == 1) {
    header = std::move(message);
    return &header;
  }
  const auto sections = sections_of(message.data(), static_cast<int64_t>(message.size()));
  if (!sections)
    return Status(WEIR_E_INTERNAL, "field " + quoted(plan_.field) + ": a message without sections");
  const int64_t five = sections->at[5];
  message.resize(static_cast<size_t>(five) + take_number(message.data() + five, 4));
  header = std::move(message);
  return &header;
}

Range Encoder::range(const void* values) const {
  return range_of(plan_.type, values, plan_.points, plan_.missing ? &*plan_.missing : nullptr);
}

// A message to set values in: for packings that are ecCodes', it has the field's packing already.
// It is a new one for each: what ecCodes makes of values in second order depends on those before.
Result<Handle> Encoder::library_handle(size_t level) const {
  Result<Handle> handle = Handle::from_bytes(base_);
  if (!handle.ok()) return explain(handle.status(), "");
  Status set = set_all(*handle, plan_.levels[level]);
  if (set.ok() && plan_.packs != Packing::kOther) set = set_all(*handle, plan_.packing);
  return set.ok() ? std::move(handle) : Result<Handle>(set);
}

Status Encoder::by_library(size_t level, const void* values, const Range& range, Scratch* scratch,
                           Bytes* to) {
  const auto count = static_cast<size_t>(plan_.points);
  std::vector<double>& doubles = scratch->doubles;
  doubles.resize(count);
  const auto convert = [&](const auto* in) {
    using T = std::remove_cvref_t<decltype(*in)>;
    const T none = plan_.missing ? static_cast<T>(*plan_.missing) : static_cast<T>(NAN);
    for (size_t i = 0; i < count; i++)
      doubles[i] = in[i] != in[i] || in[i] == none ? kGap : static_cast<double>(in[i]);
  };
  if (plan_.type == WEIR_FLOAT32) convert(static_cast<const float*>(values));
  else convert(static_cast<const double*>(values));
  Result<Handle> handle = library_handle(level);
  if (!handle.ok()) return handle.status();
  // ecCodes has no second order of edition 1 for values that are all the same.
  if (plan_.edition == 1 && plan_.sample == "GRIB" && plan_.packs == Packing::kOther &&
      (range.missing == plan_.points || range.low == range.high)) {
    WEIR_TRY(explain(handle->set_text("packingType", "grid_simple"), ""));
    // The handle has keys of the packing before.
    Result<Bytes> simple = handle->bytes();
    if (!simple.ok()) return explain(simple.status(), "");
    handle = Handle::from_bytes(*simple);
    if (!handle.ok()) return explain(handle.status(), "");
  }
  if (range.missing > 0) {
    WEIR_TRY(explain(handle->set("bitmapPresent", 1), ""));
    WEIR_TRY(explain(handle->set({"missingValue", kGap, ""}), ""));
  }
  WEIR_TRY(explain(handle->set_values(doubles.data(), count), ""));
  return explain(handle->append_to(to), "");
}

Status Encoder::encode_by_library(size_t level, const void* values, Scratch* scratch, Bytes* to) {
  return by_library(level, values, range(values), scratch, to);
}

void Encoder::append_ccsds(const char* section5, const void* values, int64_t count,
                           const Scale& scale, Scratch* scratch, Bytes* to) const {
  const EntropyLayout layout = entropy_layout(section5, scale.bits);
  const size_t before = to->size();
  to->resize(before + static_cast<size_t>(entropy_room(layout, count)));
  EntropyCoder coder(layout, to->data() + before);
  scratch->steps.resize(static_cast<size_t>(layout.interval()));
  for (int64_t first = 0; first < count; first += layout.interval()) {
    const int64_t n = std::min(count - first, layout.interval());
    steps_of(plan_.type, values, first, n, scale, scratch->steps.data());
    coder.add(scratch->steps.data(), n);
  }
  to->resize(before + static_cast<size_t>(coder.finish()));
}

// The least scale for the plan's bits, or for those of them that hold its share of the information.
Scale Encoder::scale(const void* values, int64_t count, const Range& range,
                     Scratch* scratch) const {
  Scale scale = scale_for(range, plan_.bits);
  if (plan_.information == 0 || !scale.valid || scale.bits == 0) return scale;
  // Steps finer than those of the values themselves have a pattern, which is no information.
  const double most = std::max(std::abs(range.low), std::abs(range.high));
  const int finest = std::ilogb(most) - mantissa_bits(plan_.type) + 1;
  if (scale.binary < finest)
    scale = scale_for(range, std::max(1, scale.bits - (finest - scale.binary)));
  BitInformation information(scale.bits);
  const int64_t row = range.missing == 0 ? plan_.row : count;
  each_run(count, row, [&](int64_t first, int64_t n) {
    scratch->steps.resize(static_cast<size_t>(n));
    steps_of(plan_.type, values, first, n, scale, scratch->steps.data());
    information.add(scratch->steps.data(), n);
  });
  const int bits = bits_to_keep(information.information(), plan_.information);
  return bits == 0 ? scale : scale_for(range, bits);
}

void Encoder::append(const Bytes& header, const void* values, const Range& range,
                     const Scale& scale, Scratch* scratch, Bytes* to) const {
  const int64_t count = plan_.points - range.missing;
  const size_t begin = to->size();
  append_bytes(to, header.data(), header.size());
  const auto sections = sections_of(header.data(), static_cast<int64_t>(header.size()));
  const size_t five = begin + static_cast<size_t>(sections->at[5]);
  append_section(to, 6, 6 + (range.missing > 0 ? scratch->bitmap.size() : 0));
  to->push_back(range.missing > 0 ? 0 : static_cast<char>(255));
  if (range.missing > 0) append_bytes(to, scratch->bitmap.data(), scratch->bitmap.size());
  const size_t seven = to->size();
  append_section(to, 7, 5);
  if (scale.bits > 0 && plan_.packs == Packing::kCcsds) {
    append_ccsds(header.data() + sections->at[5], values, count, scale, scratch, to);
  } else if (scale.bits > 0) {
    const size_t data = to->size();
    to->resize(data + static_cast<size_t>(count * scale.bits + 7) / 8);
    pack(plan_.type, values, count, scale, to->data() + data);
  }
  put_number(to->data() + seven, 4, to->size() - seven);
  append_bytes(to, "7777", 4);
  put_number(to->data() + begin + 8, 8, to->size() - begin);
  char* section5 = to->data() + five;
  put_number(section5 + kNumberOfValues, 4, static_cast<uint64_t>(count));
  put_number(section5 + kReference, 4,
             std::bit_cast<uint32_t>(static_cast<float>(scale.reference)));
  // Of a constant field ecCodes leaves the scale as the header has it: nothing is scaled.
  if (scale.bits > 0) put_signed(section5 + kBinary, 2, scale.binary);
  section5[kBits] = static_cast<char>(scale.bits);
}

// Of numbers beyond float32 ecCodes writes infinity (grid_ieee), or ends the process. Precision 2
// is float64.
Status Encoder::check_range(const Range& range) const {
  if (std::isinf(range.low) || std::isinf(range.high))
    return {WEIR_E_VALUE,
            "it has infinite values, which GRIB cannot say; make them the missing value"};
  constexpr double kMost = std::numeric_limits<float>::max();
  const double worst = -range.low > range.high ? range.low : range.high;
  if (std::abs(worst) <= kMost) return {};
  for (const FormatKey& key : plan_.packing) {
    if (key.name == "precision" && value_text(key) == "2") return {};
  }
  return {WEIR_E_VALUE, "it has the value " + number_text(worst) + "; expected at most " +
                            number_text(kMost) +
                            " (float32) of either sign; correct it, or make it the missing value"};
}

Status Encoder::encode(size_t level, const void* values, Scratch* scratch, Bytes* to, int* bits) {
  const Traced traced(Event::kEncode, {},
                      plan_.points * static_cast<int64_t>(size_of(plan_.type)));
  const Range range = this->range(values);
  const bool has_values = range.missing < plan_.points;
  if (has_values) WEIR_TRY(explain(check_range(range), ""));
  if (plan_.packs == Packing::kOther || !has_values)
    return by_library(level, values, range, scratch, to);
  const void* present = values;
  if (range.missing > 0) {
    split_missing(plan_.type, values, plan_.points, plan_.missing ? &*plan_.missing : nullptr,
                  &scratch->bitmap, &scratch->present);
    present = scratch->present.data();
  }
  const Scale scale = this->scale(present, plan_.points - range.missing, range, scratch);
  if (!scale.valid) return by_library(level, values, range, scratch, to);
  Result<const Bytes*> header = this->header(level);
  if (!header.ok()) return header.status();
  const Bytes& head = **header;
  if (plan_.packs == Packing::kCcsds) {
    const auto sections = sections_of(head.data(), static_cast<int64_t>(head.size()));
    if (!codes_itself(head.data() + sections->at[5], scale.bits))
      return by_library(level, values, range, scratch, to);
  }
  if (bits) *bits = scale.bits;
  append(head, present, range, scale, scratch, to);
  return {};
}

}  // namespace weir::output::grib
