// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "output/format/zarr/reader.h"

namespace weir::output::zarr {
namespace {

using nlohmann::json;

// What "/shape/0" leads to; null when nothing is there.
const json& at(const json& from, const std::string& pointer) {
  static const json kNothing;
  const json::json_pointer where(pointer);
  return from.contains(where) ? from.at(where) : kNothing;
}

std::string text_of(const json& value) { return value.is_string() ? value.get<std::string>() : ""; }

Status refuse(const std::string& what) { return {WEIR_E_FORMAT, what}; }

bool to_numbers(const json& from, std::vector<int64_t>& out) {
  if (!from.is_array()) return false;
  for (const json& n : from) {
    if (!n.is_number() || n.get<double>() < 0 || n.get<double>() > 1e15) return false;
    out.push_back(n.get<int64_t>());
  }
  return true;
}

bool to_type(const json& from, Found& out) {
  static const std::map<std::string, Type> types = {
      {"float32", WEIR_FLOAT32}, {"float64", WEIR_FLOAT64}, {"int32", WEIR_INT32},
      {"int64", WEIR_INT64},     {"int16", WEIR_INT16},     {"int8", WEIR_INT8},
      {"uint32", WEIR_INT32},    {"uint16", WEIR_INT16},    {"uint8", WEIR_INT8}};
  const auto found = types.find(text_of(from));
  if (found == types.end()) return false;
  out.type = found->second;
  out.is_unsigned = found->first.front() == 'u';
  return true;
}

template <typename T>
void put(std::vector<char>& out, auto value) {
  const T typed = static_cast<T>(value);
  out.resize(sizeof typed);
  std::memcpy(out.data(), &typed, sizeof typed);
}

std::vector<char> fill_of(const json& from, Type type) {
  double value = from.is_number() ? from.get<double>() : 0;
  if (from == "NaN") value = NAN;
  if (from == "Infinity" || from == "-Infinity") value = from == "Infinity" ? INFINITY : -INFINITY;
  const int64_t whole = from.is_number_integer() ? from.get<int64_t>() : 0;
  std::vector<char> out;
  switch (type) {
    case WEIR_FLOAT32: put<float>(out, value); break;
    case WEIR_FLOAT64: put<double>(out, value); break;
    case WEIR_INT32: put<int32_t>(out, whole); break;  // also the bits of unsigned ones
    case WEIR_INT64: put<int64_t>(out, whole); break;
    case WEIR_INT16: put<int16_t>(out, whole); break;
    case WEIR_INT8: put<int8_t>(out, whole); break;
  }
  return out;
}

// bytes, then nothing or one compressor.
Status parse_codecs(const json& codecs, Stored& out) {
  if (at(codecs, "/0/name") != "bytes") return refuse("codecs that do not begin with bytes");
  if (at(codecs, "/0/configuration/endian") == "big") return refuse("big-endian data");
  if (codecs.size() > 2) return refuse("more than one compressor");
  const json& compressor = at(codecs, "/1/name");
  if (compressor == "zstd") out.codec = Codec::kZstd;
  if (compressor == "gzip") out.codec = Codec::kGzip;
  if (codecs.size() == 2 && out.codec == Codec::kNone)
    return refuse("the codec " + text_of(compressor));
  return {};
}

Status parse_storage(const json& from, Stored& out) {
  if (at(from, "/chunk_grid/name") != "regular" ||
      !to_numbers(at(from, "/chunk_grid/configuration/chunk_shape"), out.file_shape)) {
    return refuse("its chunk grid");
  }
  out.sharded = at(from, "/codecs/0/name") == "sharding_indexed";
  out.chunk_shape = out.file_shape;
  if (!out.sharded) return parse_codecs(at(from, "/codecs"), out);
  out.chunk_shape.clear();
  const json& sharding = at(from, "/codecs/0/configuration");
  if (!to_numbers(at(sharding, "/chunk_shape"), out.chunk_shape)) return refuse("its shards");
  const json& index = at(sharding, "/index_codecs");
  if (at(sharding, "/index_location") == "start" || index.size() != 2 ||
      at(index, "/1/name") != "crc32c") {
    return refuse("shards whose index is not at the end with a crc32c");
  }
  return parse_codecs(at(sharding, "/codecs"), out);
}

// Time is the first dimension when it is called so.
Status parse_shape(const json& from, Stored& out) {
  std::vector<int64_t> shape;
  if (!to_numbers(at(from, "/shape"), shape)) return refuse("its shape");
  if (out.file_shape.size() != shape.size() || out.chunk_shape.size() != shape.size())
    return refuse("its chunks' number of dimensions");
  std::vector<int64_t> chunk = out.chunk_shape;
  for (size_t d = 0; d < shape.size(); d++) {
    if (chunk[d] < 1 || out.file_shape[d] < 1 || out.file_shape[d] % chunk[d] != 0)
      return refuse("its chunks' lengths");
  }
  out.found.over_time = !shape.empty() && at(from, "/dimension_names/0") == "time";
  out.found.lengths = shape;
  for (size_t d = out.found.over_time ? 1 : 0; d < shape.size(); d++)
    out.found.dimensions.push_back(text_of(at(from, "/dimension_names/" + std::to_string(d))));
  out.found.units = text_of(at(from, "/attributes/units"));
  out.found.standard_name = text_of(at(from, "/attributes/standard_name"));
  out.found.coordinates = text_of(at(from, "/attributes/coordinates"));
  if (out.found.over_time) {
    out.found.records = shape[0];
    out.found.lengths.erase(out.found.lengths.begin());
    chunk.erase(chunk.begin());
  }
  // A chunk may be longer than the array: then the layout's sticks out less, which load() knows.
  out.chunk = chunks::Layout(out.found.lengths, chunk);
  return {};
}

// The eight bytes of a float64, little-endian, in base64 (RFC 4648): so xarray writes _FillValue of
// floats.
std::optional<double> from_base64(const std::string& text) {
  static const std::string kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr size_t kLength = 12;  // the last one fills up
  if (text.size() != kLength || text.back() != '=') return {};
  std::vector<unsigned char> bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i + 1 < kLength; i++) {
    const size_t digit = kDigits.find(text[i]);
    if (digit == std::string::npos) return {};
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (i % 4 != 0) bytes.push_back(static_cast<unsigned char>(bits >> (6 - 2 * (i % 4))));
  }
  double value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// An attribute that masks, as a value of the data's type has it: stores may say 1e20 of float32.
std::optional<Number> number_in(const json& from, Type type) {
  if (from.is_number_integer()) return Number::exactly(from.get<int64_t>());
  std::optional<double> value;
  if (from.is_number()) value = from.get<double>();
  if (from == "NaN") value = NAN;
  if (!value && from.is_string()) value = from_base64(from.get<std::string>());
  if (value && type == WEIR_FLOAT32) value = static_cast<double>(static_cast<float>(*value));
  return value;
}

void find_packing(const json& from, Stored& out) {
  const json& scale = at(from, "/attributes/scale_factor");
  const json& offset = at(from, "/attributes/add_offset");
  const json& fill = at(from, "/fill_value");
  if (scale.is_number() || offset.is_number()) {
    out.found.packing = Packing{scale.is_number() ? scale.get<double>() : 1,
                                offset.is_number() ? offset.get<double>() : 0};
  }
  for (const char* name : {"/attributes/_FillValue", "/attributes/missing_value"}) {
    if (const std::optional<Number> masks = number_in(at(from, name), out.found.type))
      out.found.fills.add(*masks);
  }
  // Stores of others have 0 there where they say nothing of missing values.
  if (out.found.fills.count == 0 && fill.is_number() &&
      (out.found.packing || fill.get<double>() != 0))
    out.found.fills.add(*number_in(fill, out.found.type));
}

}  // namespace

Result<Stored> parse_array(const json& from) {
  Stored out;
  if (at(from, "/zarr_format") != 3 || at(from, "/node_type") != "array")
    return refuse("no array of Zarr v3");
  if (!to_type(at(from, "/data_type"), out.found))
    return refuse("its data type " + text_of(at(from, "/data_type")));
  WEIR_TRY(parse_storage(from, out));
  WEIR_TRY(parse_shape(from, out));
  out.fill = fill_of(at(from, "/fill_value"), out.found.type);
  find_packing(from, out);
  if (at(from, "/chunk_key_encoding/name") != "default") return refuse("its chunk key encoding");
  const json& separator = at(from, "/chunk_key_encoding/configuration/separator");
  out.separator = separator.is_string() ? separator.get<std::string>() : "/";
  return out;
}

}  // namespace weir::output::zarr
