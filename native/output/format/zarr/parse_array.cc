// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "output/format/zarr/reader.h"

namespace weir::output::zarr {
namespace {

Status refuse(const std::string& what) { return {WEIR_E_FORMAT, what}; }

bool to_numbers(const Json& json, std::vector<int64_t>& out) {
  for (const Json& n : json.list) {
    if (n.kind != Json::Kind::kNumber || n.number < 0 || n.number > 1e15) return false;
    out.push_back(static_cast<int64_t>(n.number));
  }
  return json.kind == Json::Kind::kList;
}

bool to_type(const Json& json, Type& out) {
  static const std::map<std::string, Type> types = {{"float32", WEIR_FLOAT32}, {"float64", WEIR_FLOAT64}, {"int32", WEIR_INT32},
                                                    {"int64", WEIR_INT64},     {"int16", WEIR_INT16},     {"int8", WEIR_INT8}};
  const auto found = types.find(json.text);
  if (found != types.end()) out = found->second;
  return found != types.end();
}

template <typename T>
void put(std::vector<char>& out, double value) {
  const T typed = static_cast<T>(value);
  out.resize(sizeof typed);
  std::memcpy(out.data(), &typed, sizeof typed);
}

std::vector<char> fill_of(const Json& json, Type type) {
  double value = json.kind == Json::Kind::kNumber ? json.number : 0;
  if (json.is("NaN")) value = NAN;
  if (json.is("Infinity") || json.is("-Infinity")) value = json.is("Infinity") ? INFINITY : -INFINITY;
  std::vector<char> out;
  switch (type) {
    case WEIR_FLOAT32: put<float>(out, value); break;
    case WEIR_FLOAT64: put<double>(out, value); break;
    case WEIR_INT32: put<int32_t>(out, value); break;
    case WEIR_INT64: put<int64_t>(out, value); break;
    case WEIR_INT16: put<int16_t>(out, value); break;
    case WEIR_INT8: put<int8_t>(out, value); break;
  }
  return out;
}

// bytes, then nothing or one compressor.
Status parse_codecs(const Json& codecs, Stored& out) {
  if (!codecs.at(0).at("name").is("bytes")) return refuse("codecs that do not begin with bytes");
  if (codecs.at(0).at("configuration").at("endian").is("big")) return refuse("big-endian data");
  if (codecs.list.size() > 2) return refuse("more than one compressor");
  const Json& compressor = codecs.at(1).at("name");
  if (compressor.is("zstd")) out.codec = Codec::kZstd;
  if (compressor.is("gzip")) out.codec = Codec::kGzip;
  if (codecs.list.size() == 2 && out.codec == Codec::kNone) return refuse("the codec " + compressor.text);
  return {};
}

Status parse_storage(const Json& json, Stored& out) {
  const Json& grid = json.at("chunk_grid");
  if (!grid.at("name").is("regular") || !to_numbers(grid.at("configuration").at("chunk_shape"), out.file_shape)) return refuse("its chunk grid");
  const Json& codec = json.at("codecs").at(0);
  out.sharded = codec.at("name").is("sharding_indexed");
  out.chunk_shape = out.file_shape;
  if (!out.sharded) return parse_codecs(json.at("codecs"), out);
  out.chunk_shape.clear();
  const Json& sharding = codec.at("configuration");
  if (!to_numbers(sharding.at("chunk_shape"), out.chunk_shape)) return refuse("its shards");
  const Json& index = sharding.at("index_codecs");
  if (sharding.at("index_location").is("start") || index.list.size() != 2 || !index.at(1).at("name").is("crc32c")) {
    return refuse("shards whose index is not at the end with a crc32c");
  }
  return parse_codecs(sharding.at("codecs"), out);
}

// Time is the first dimension when it is called so.
Status parse_shape(const Json& json, Stored& out) {
  std::vector<int64_t> shape;
  if (!to_numbers(json.at("shape"), shape)) return refuse("its shape");
  if (out.file_shape.size() != shape.size() || out.chunk_shape.size() != shape.size()) return refuse("its chunks' number of dimensions");
  std::vector<int64_t> chunk = out.chunk_shape;
  for (size_t d = 0; d < shape.size(); d++) {
    if (chunk[d] < 1 || out.file_shape[d] < 1 || out.file_shape[d] % chunk[d] != 0) return refuse("its chunks' lengths");
  }
  out.found.over_time = !shape.empty() && json.at("dimension_names").at(0).is("time");
  out.found.lengths = shape;
  if (out.found.over_time) {
    out.found.records = shape[0];
    out.found.lengths.erase(out.found.lengths.begin());
    chunk.erase(chunk.begin());
  }
  // A chunk may be longer than the array: then the layout's sticks out less, which load() knows.
  out.chunk = chunks::Layout(out.found.lengths, chunk);
  return {};
}

void find_packing(const Json& json, Stored& out) {
  const Json& scale = json.at("attributes").at("scale_factor");
  const Json& offset = json.at("attributes").at("add_offset");
  const bool scaled = scale.kind == Json::Kind::kNumber, shifted = offset.kind == Json::Kind::kNumber;
  if (scaled || shifted) out.found.packing = Packing{scaled ? scale.number : 1, shifted ? offset.number : 0};
  if (json.at("fill_value").kind == Json::Kind::kNumber) out.found.fill = json.at("fill_value").number;
}

}  // namespace

Result<Stored> parse_array(const Json& json) {
  Stored out;
  if (json.at("zarr_format").number != 3 || !json.at("node_type").is("array")) return refuse("no array of Zarr v3");
  if (!to_type(json.at("data_type"), out.found.type)) return refuse("its data type " + json.at("data_type").text);
  WEIR_TRY(parse_storage(json, out));
  WEIR_TRY(parse_shape(json, out));
  out.fill = fill_of(json.at("fill_value"), out.found.type);
  find_packing(json, out);
  const Json& encoding = json.at("chunk_key_encoding");
  if (!encoding.at("name").is("default")) return refuse("its chunk key encoding");
  const Json& separator = encoding.at("configuration").at("separator");
  out.separator = separator.kind == Json::Kind::kText ? separator.text : "/";
  return out;
}

}  // namespace weir::output::zarr
