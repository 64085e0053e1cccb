// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/encoder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "output/core/trace.h"
#include "output/format/grib/bytes.h"
#include "output/format/grib/grid.h"
#include "output/model/text.h"

namespace weir::output::grib {
namespace {

// Octets of section 5 (templates 5.0 and 5.42), from its begin.
constexpr int kNumberOfValues = 5, kReference = 11, kBinary = 15, kBits = 19,
              kCcsdsFlags = 21, kCcsdsBlock = 22, kCcsdsInterval = 23;
// Of libaec, as octet 22 of template 5.42 has them.
constexpr int kSigned = 1, kThreeBytes = 2, kMostSignificantFirst = 4;

void append_bytes(std::vector<char>* to, const char* bytes, size_t count) {
  to->insert(to->end(), bytes, bytes + count);
}

void append_section(std::vector<char>* to, int number, uint64_t bytes) {
  char head[5];
  put_number(head, 4, bytes);
  head[4] = static_cast<char>(number);
  append_bytes(to, head, sizeof head);
}

}  // namespace

Status Encoder::explain(const Status& status, const std::string& place) const {
  if (status.ok()) return status;
  return {status.code(), (place.empty() ? "" : place + ": ") + "field " + quoted(plan_.field) +
                             ": " + status.message()};
}

Status Encoder::set_all(Handle& handle, const FormatKeys& keys) const {
  for (const FormatKey& key : keys) WEIR_TRY(explain(handle.set(key), key.place));
  return {};
}

// The first of the names that ecCodes knows, and that is the quantity that the standard name says;
// else the first of those of which it knows no standard name.
Status Encoder::set_parameter(Handle& handle) const {
  if (plan_.parameters.empty()) return {};
  std::string tried;
  const FormatKey* vague = nullptr;
  for (const FormatKey& key : plan_.parameters) {
    tried += (tried.empty() ? "" : ", ") + key.name + " " + value_text(key);
    if (!handle.set(key).ok()) continue;
    if (key.name == "cfName" || plan_.standard_name.empty()) return {};
    Result<std::string> is = handle.text("cfName");
    if (is.ok() && *is == plan_.standard_name) return {};
    if (vague == nullptr && (!is.ok() || *is == "unknown")) vague = &key;
  }
  if (vague) return explain(handle.set(*vague), "");
  return {WEIR_E_FORMAT,
          "field " + quoted(plan_.field) + ": ecCodes knows no parameter by " + tried +
              "; give paramId or shortName, or discipline, parameterCategory and "
              "parameterNumber, in the configuration (grib = { paramId = 130 }) or as attribute "
              "GRIB_paramId of the field"};
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
  Result<Handle> made = Handle::from_sample("GRIB" + std::to_string(plan_.edition));
  if (!made.ok()) return made.status();
  Handle& handle = *made;
  WEIR_TRY(set_all(handle, plan_.header));
  if (plan_.edition == 2) WEIR_TRY(explain(handle.set("numberOfDataPoints", plan_.points), ""));
  WEIR_TRY(set_parameter(handle));
  WEIR_TRY(set_all(handle, plan_.rest));
  WEIR_TRY(set_all(handle, plan_.levels[0]));
  // Packings that are ecCodes' keep their type only with values that are not all the same.
  std::vector<double> values(static_cast<size_t>(plan_.points), 0);
  for (size_t i = 0; i < values.size() && plan_.packs == Packing::kOther; i++)
    values[i] = static_cast<double>(i % 16);
  if (plan_.packs == Packing::kOther) WEIR_TRY(explain(handle.set("bitsPerValue", 16), ""));
  WEIR_TRY(explain(handle.set_values(values.data(), values.size()), ""));
  WEIR_TRY(set_all(handle, plan_.packing));
  times_ = TimePlaces::in(handle, plan_.edition);
  Result<std::vector<char>> bytes = handle.bytes();
  if (!bytes.ok()) return explain(bytes.status(), "");
  base_ = std::move(*bytes);
  headers_.resize(plan_.messages());
  return {};
}

Result<const std::vector<char>*> Encoder::header(size_t level) {
  std::vector<char>& header = headers_[level];
  if (!header.empty()) return &header;
  std::vector<char> message = base_;
  if (level > 0) {
    Result<Handle> handle = Handle::from_bytes(base_);
    if (!handle.ok()) return handle.status();
    WEIR_TRY(set_all(*handle, plan_.levels[level]));
    Result<std::vector<char>> bytes = handle->bytes();
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

Status Encoder::by_library(size_t level, const void* values, bool with_missing,
                           std::vector<char>* to) {
  const auto count = static_cast<size_t>(plan_.points);
  doubles_.resize(count);
  const auto convert = [&](const auto* in) {
    using T = std::remove_cvref_t<decltype(*in)>;
    const T none = plan_.missing ? static_cast<T>(*plan_.missing) : static_cast<T>(NAN);
    for (size_t i = 0; i < count; i++)
      doubles_[i] = in[i] != in[i] || in[i] == none ? kGap : static_cast<double>(in[i]);
  };
  if (plan_.type == WEIR_FLOAT32) convert(static_cast<const float*>(values));
  else convert(static_cast<const double*>(values));
  Result<Handle> handle = Handle::from_bytes(base_);
  if (!handle.ok()) return explain(handle.status(), "");
  WEIR_TRY(set_all(*handle, plan_.levels[level]));
  for (const FormatKey& key : plan_.packing) {
    if (key.name != "packingType" || plan_.packs != Packing::kOther)
      WEIR_TRY(explain(handle->set(key), key.place));
  }
  if (with_missing) {
    WEIR_TRY(explain(handle->set("bitmapPresent", 1), ""));
    WEIR_TRY(explain(handle->set({"missingValue", kGap, ""}), ""));
  }
  WEIR_TRY(explain(handle->set_values(doubles_.data(), count), ""));
  Result<std::vector<char>> bytes = handle->bytes();
  if (!bytes.ok()) return explain(bytes.status(), "");
  append_bytes(to, bytes->data(), bytes->size());
  return {};
}

Status Encoder::encode_by_library(size_t level, const void* values, std::vector<char>* to) {
  const Range range = range_of(plan_.type, values, plan_.points,
                               plan_.missing ? &*plan_.missing : nullptr);
  return by_library(level, values, range.missing > 0, to);
}

Status Encoder::append_ccsds(const char* section5, const void* values, int64_t count,
                             const Scale& scale, std::vector<char>* to) {
  const int bytes = (scale.bits + 7) / 8;
  samples_.resize(static_cast<size_t>(count * bytes) + 8);
  quantise(plan_.type, values, count, scale, bytes, samples_.data());
  const size_t before = to->size();
  // As much as ecCodes allows for values that cannot be compressed.
  size_t room = static_cast<size_t>(count) * static_cast<size_t>(bytes) * 67 / 64 + 256;
  to->resize(before + room);
  std::string why;
  eccodes::Why refused;
  if (!eccodes_module(&why)->pack_ccsds(
          samples_.data(), static_cast<size_t>(bytes), static_cast<size_t>(count), scale.bits,
          static_cast<unsigned char>(section5[kCcsdsFlags]),
          static_cast<int>(take_number(section5 + kCcsdsBlock, 1)),
          static_cast<int>(take_number(section5 + kCcsdsInterval, 2)), to->data() + before, &room,
          refused)) {
    return explain({WEIR_E_FORMAT, refused.text}, "");
  }
  to->resize(before + room);
  return {};
}

Status Encoder::append(const std::vector<char>& header, const void* values, const Range& range,
                       const Scale& scale, std::vector<char>* to) {
  const int64_t count = plan_.points - range.missing;
  const size_t begin = to->size();
  if (range.missing > 0) {
    split_missing(plan_.type, values, plan_.points, plan_.missing ? &*plan_.missing : nullptr,
                  &bitmap_, &present_);
    values = present_.data();
  }
  append_bytes(to, header.data(), header.size());
  const auto sections = sections_of(header.data(), static_cast<int64_t>(header.size()));
  const size_t five = begin + static_cast<size_t>(sections->at[5]);
  append_section(to, 6, 6 + (range.missing > 0 ? bitmap_.size() : 0));
  to->push_back(range.missing > 0 ? 0 : static_cast<char>(255));
  if (range.missing > 0) append_bytes(to, bitmap_.data(), bitmap_.size());
  const size_t seven = to->size();
  append_section(to, 7, 5);
  if (scale.bits > 0 && plan_.packs == Packing::kCcsds) {
    WEIR_TRY(append_ccsds(header.data() + sections->at[5], values, count, scale, to));
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
  return {};
}

Status Encoder::encode(size_t level, const void* values, std::vector<char>* to) {
  const Traced traced(Event::kEncode, {},
                      plan_.points * static_cast<int64_t>(size_of(plan_.type)));
  const Range range = range_of(plan_.type, values, plan_.points,
                               plan_.missing ? &*plan_.missing : nullptr);
  const bool has_values = range.missing < plan_.points;
  if (has_values && (std::isinf(range.low) || std::isinf(range.high))) {
    return explain({WEIR_E_VALUE, "it has infinite values, which GRIB cannot say; make them the "
                                  "missing value"},
                   "");
  }
  Scale scale;
  if (has_values) scale = scale_for(range, plan_.bits);
  if (plan_.packs == Packing::kOther || !has_values || !scale.valid)
    return by_library(level, values, range.missing > 0, to);
  Result<const std::vector<char>*> header = this->header(level);
  if (!header.ok()) return header.status();
  const int flags = plan_.packs == Packing::kCcsds
                        ? static_cast<unsigned char>(
                              (**header)[(*header)->size() - 25 + kCcsdsFlags])
                        : 0;
  const bool usual_flags = plan_.packs != Packing::kCcsds ||
                           ((flags & kSigned) == 0 && (flags & kMostSignificantFirst) != 0 &&
                            (flags & kThreeBytes) != 0);
  if (!usual_flags) return by_library(level, values, range.missing > 0, to);
  return append(**header, values, range, scale, to);
}

}  // namespace weir::output::grib
