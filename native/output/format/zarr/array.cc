// SPDX-License-Identifier: Apache-2.0
#include "output/format/zarr/array.h"

#include <algorithm>

#include "output/format/zarr/json.h"

namespace weir::output::zarr {
namespace {

// A record of so few bytes shares its chunk with other records.
constexpr int64_t kSeriesBytes = 64;
// Few enough files for a parallel file system, enough of them for many owners.
constexpr int64_t kShardBytes = 64 << 20;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Chunks along each dimension that a shard has: all of the faster ones, as many of the slower ones
// as the size allows.
std::vector<int64_t> shard_chunks(const chunks::Layout& chunk, int64_t element_bytes) {
  const size_t rank = chunk.lengths().size();
  std::vector<int64_t> n(rank, 1);
  int64_t bytes = chunk.chunk_elements() * element_bytes;
  size_t band = 0;  // bands must be whole: everything behind the dimension that they cut
  while (band + 1 < rank && chunk.chunk()[band] == 1) band++;
  for (size_t d = rank; d-- > 0;) {
    const int64_t along = chunk.chunks_along(d);
    n[d] = d > band ? along : std::clamp<int64_t>(kShardBytes / bytes, 1, along);
    if (d <= band && n[d] < along) n[d] = divide_up(along, divide_up(along, n[d]));
    bytes *= n[d];
    if (d <= band && n[d] < along) break;
  }
  return n;
}

// As the data have it: readers compare in double, where 1e20 is no value of float32.
std::string value_json(const Number& value, Type type) {
  if (type == WEIR_FLOAT32) return written(static_cast<double>(value.as<float>()));
  if (type == WEIR_FLOAT64) return written(value.real);
  return std::to_string(value.whole);
}

std::string attribute_json(const Attribute& attribute) {
  if (const std::string* text = std::get_if<std::string>(&attribute.value)) return quoted(*text);
  if (const double* number = std::get_if<double>(&attribute.value)) return written(*number);
  std::string out;
  for (double number : std::get<std::vector<double>>(attribute.value))
    out += (out.empty() ? "[" : ",") + written(number);
  return out.empty() ? "[]" : out + "]";
}

std::string attributes_json(const Attributes& attributes, const Variable* variable) {
  std::string out = "{";
  const auto add = [&](const std::string& name, const std::string& value) {
    out += (out.size() > 1 ? "," : "") + quoted(name) + ":" + value;
  };
  for (const Attribute& a : attributes) {
    add(a.name, attribute_json(a));
  }
  // Readers mask by this one; _FillValue is base64 to some of them and a number to others.
  if (variable && variable->fill) add("missing_value", value_json(*variable->fill, variable->type));
  return out + "}";
}

std::string codecs_json(const Array& array) {
  std::string inner = R"([{"name":"bytes","configuration":{"endian":"little"}})";
  if (array.how == How::kSharded && array.compression.kind == Compression::Kind::kZstd) {
    inner += R"(,{"name":"zstd","configuration":{"level":)" +
             std::to_string(array.compression.level) + R"(,"checksum":false}})";
  } else if (array.how == How::kSharded && array.compression.kind == Compression::Kind::kDeflate) {
    inner += R"(,{"name":"gzip","configuration":{"level":)" +
             std::to_string(array.compression.level) + "}}";
  }
  inner += "]";
  if (array.how != How::kSharded) return inner;
  std::vector<int64_t> chunk = array.chunk.chunk();
  if (array.over_time) chunk.insert(chunk.begin(), 1);
  return R"([{"name":"sharding_indexed","configuration":{"chunk_shape":)" + written(chunk) +
         R"(,"codecs":)" + inner +
         R"(,"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}],"index_location":"end"}}])";
}

}  // namespace

int64_t Array::chunks_in_shard() const {
  int64_t n = 1;
  for (size_t d = 0; d < shard_shape.size(); d++) n *= shard_shape[d] / chunk.chunk()[d];
  return n;
}

int64_t Array::place_in_shard(const std::vector<int64_t>& start) const {
  int64_t place = 0;
  for (size_t d = 0; d < shard_shape.size(); d++) {
    const int64_t along = chunk.chunk()[d];
    place = place * (shard_shape[d] / along) + start[d] % shard_shape[d] / along;
  }
  return place;
}

int64_t Array::chunks_present(int64_t index) const {
  const std::vector<int64_t> start = shard.start_of(index, 0);
  int64_t n = 1;
  for (size_t d = 0; d < start.size(); d++) {
    n *= divide_up(std::min(shard_shape[d], chunk.lengths()[d] - start[d]), chunk.chunk()[d]);
  }
  return n;
}

std::string Array::key(const std::vector<int64_t>& grid) {
  std::string out = "c";
  for (int64_t n : grid) out += "." + std::to_string(n);
  return out;
}

std::string Array::shard_key(int64_t record, int64_t index) const {
  std::vector<int64_t> grid = shard.start_of(index, 0);
  for (size_t d = 0; d < grid.size(); d++) grid[d] /= shard_shape[d];
  if (over_time) grid.insert(grid.begin(), record);
  return key(grid);
}

Array array_of(const FileDescription& description, const Variable& v) {
  std::vector<int64_t> lengths;
  for (int d : v.dimensions) lengths.push_back(description.dimensions[static_cast<size_t>(d)].size);
  const int64_t size = static_cast<int64_t>(size_of(v.type));
  const chunks::Layout whole(lengths, lengths);
  const bool few = description.elements(v) * size <= kSeriesBytes;
  if (!v.over_time && (!v.values.empty() || lengths.empty()))
    return {How::kWhole, v.type, {}, false, whole, whole, lengths};
  if (v.over_time && (lengths.empty() || (few && v.compression.kind == Compression::Kind::kNone))) {
    return {How::kSeries, v.type, {}, true, whole, whole, lengths};
  }
  std::vector<int64_t> chunk =
      v.chunk.size() == lengths.size() ? v.chunk : chunks::usual_chunk(lengths, size);
  for (size_t d = 0; d < chunk.size(); d++) chunk[d] = std::clamp<int64_t>(chunk[d], 1, lengths[d]);
  const chunks::Layout layout(lengths, chunk);
  std::vector<int64_t> shape = shard_chunks(layout, size), clipped = shape;
  for (size_t d = 0; d < shape.size(); d++) {
    shape[d] *= chunk[d];
    clipped[d] = std::min(shape[d], lengths[d]);
  }
  return {How::kSharded, v.type, v.compression,
          v.over_time,   layout, chunks::Layout(lengths, clipped),
          shape};
}

std::string array_json(const FileDescription& description, const Variable& v, const Array& array,
                       int64_t records) {
  std::vector<int64_t> shape, shard = array.shard_shape;
  std::string names = "[";
  if (v.over_time) {
    shape.push_back(records);
    shard.insert(shard.begin(), array.how == How::kSeries ? kSeriesRecords : 1);
    names += quoted(description.dimensions[static_cast<size_t>(description.time)].name);
  }
  for (int d : v.dimensions) {
    const Dimension& dimension = description.dimensions[static_cast<size_t>(d)];
    shape.push_back(dimension.size);
    names += (names.size() > 1 ? "," : "") + quoted(dimension.name);
  }
  const bool real = v.type == WEIR_FLOAT32 || v.type == WEIR_FLOAT64;
  const std::string fill = v.fill ? value_json(*v.fill, v.type) : real ? "\"NaN\"" : "0";
  return R"({"zarr_format":3,"node_type":"array","shape":)" + written(shape) + R"(,"data_type":")" +
         name_of(v.type) + R"(","chunk_grid":{"name":"regular","configuration":{"chunk_shape":)" +
         written(shard) +
         R"(}},"chunk_key_encoding":{"name":"default","configuration":{"separator":"."}},)" +
         R"("fill_value":)" +
         fill + R"(,"codecs":)" + codecs_json(array) + R"(,"attributes":)" +
         attributes_json(v.attributes, &v) + R"(,"dimension_names":)" + names + "]}";
}

std::string with_short_missing(std::string text, const Variable& v) {
  if (!v.fill || v.type != WEIR_FLOAT32) return text;
  for (const std::string name : {"\"fill_value\":", "\"missing_value\":"}) {
    const size_t at = text.find(name) + name.size();
    text.replace(at, text.find_first_of(",}", at) - at, written(v.fill->real));
  }
  return text;
}

std::string group_json(const FileDescription& description, const std::vector<Array>& arrays,
                       int64_t records) {
  std::string out =
      R"({"zarr_format":3,"node_type":"group","attributes":)" +
      attributes_json(description.attributes, nullptr) +
      R"(,"consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{)";
  for (size_t i = 0; i < arrays.size(); i++) {
    const Variable& v = description.variables[i];
    out += (i ? "," : "") + quoted(v.name) + ":" + array_json(description, v, arrays[i], records);
  }
  return out + "}}}";
}

}  // namespace weir::output::zarr
