// SPDX-License-Identifier: Apache-2.0
// Tests only: files of odd shapes with values known by formula, written by several owners in turn,
// and read back.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "output/format/format.h"
#include "output/format/reader.h"
#include "output/format/team_of_threads.h"

namespace weir::output {

// A directory that goes with the test.
class Scratch {
 public:
  Scratch() {
    char name[] = "/tmp/weir-format-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

template <typename Values>
auto big_endian(const Values& values) {
  using T = std::remove_cvref_t<decltype(values[0])>;
  std::vector<T> out(std::begin(values), std::end(values));
  for (T& value : out) {
    char* bytes = reinterpret_cast<char*>(&value);
    std::reverse(bytes, bytes + sizeof value);
  }
  return out;
}

// The value of an element, small enough for every type.
inline double value_at(int variable, int64_t record, int64_t element) {
  return static_cast<double>((variable * 31 + record * 7 + element) % 113 - 50);
}

template <typename T>
void fill(std::vector<char>& out, int variable, int64_t record, int64_t first, int64_t count) {
  out.resize(static_cast<size_t>(count) * sizeof(T));
  for (int64_t i = 0; i < count; i++) {
    const T value = static_cast<T>(value_at(variable, record, first + i));
    std::memcpy(out.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof value);
  }
}

inline std::vector<char> values_of(Type type, int variable, int64_t record, int64_t first,
                                   int64_t count, ByteOrder order) {
  std::vector<char> out;
  switch (type) {
    case WEIR_FLOAT32: fill<float>(out, variable, record, first, count); break;
    case WEIR_FLOAT64: fill<double>(out, variable, record, first, count); break;
    case WEIR_INT32: fill<int32_t>(out, variable, record, first, count); break;
    case WEIR_INT64: fill<int64_t>(out, variable, record, first, count); break;
    case WEIR_INT16: fill<int16_t>(out, variable, record, first, count); break;
    case WEIR_INT8: fill<int8_t>(out, variable, record, first, count); break;
  }
  const size_t size = size_of(type);
  if (order == ByteOrder::kBig) {
    for (size_t i = 0; i < out.size(); i += size)
      std::reverse(out.begin() + static_cast<long>(i), out.begin() + static_cast<long>(i + size));
  }
  return out;
}

// Elements that `owner` of `owners` has: whole granules, in turn.
inline std::vector<std::pair<int64_t, int64_t>> parts(int64_t elements, int64_t granule, int owner,
                                                      int owners) {
  std::vector<std::pair<int64_t, int64_t>> out;
  for (int64_t first = owner * granule; first < elements; first += owners * granule) {
    out.push_back({first, std::min(granule, elements - first)});
  }
  return out;
}

// Granules are written in pieces of `piece` elements, ascending within a granule.
inline Status write_record(Format& format, File& file, const FileDescription& d, int64_t record,
                           int owner, int owners, int64_t piece) {
  for (int v = 0; v < static_cast<int>(d.variables.size()); v++) {
    const Variable& variable = d.variables[static_cast<size_t>(v)];
    if (!variable.values.empty() || (!variable.over_time && record > 0)) continue;
    const int64_t granule = std::max(format.granule(d, v), piece);
    const int64_t whole =
        (granule + format.granule(d, v) - 1) / format.granule(d, v) * format.granule(d, v);
    for (auto [first, count] : parts(d.elements(variable), whole, owner, owners)) {
      for (int64_t at = first; at < first + count; at += piece) {
        const int64_t n = std::min(piece, first + count - at);
        const std::vector<char> data =
            values_of(variable.type, v, record, at, n, format.byte_order());
        WEIR_TRY(file.write(v, record, at, n, data.data()));
      }
    }
  }
  return {};
}

struct Written {
  FileDescription description;
  std::string path;
  Status status;
};

// What GRIB can say: fields of floating point numbers on a grid of the earth.
inline FileDescription odd_description_of_grib(const std::string& format) {
  FileDescription d;
  d.dimensions = {{"lat", 7}, {"lon", 13}, {"plev", 3}, {"time", 0}};
  d.time = 3;
  const auto add = [&](const char* name, Type type, std::vector<int> dimensions, bool over_time) {
    d.variables.emplace_back();
    d.variables.back().name = name;
    d.variables.back().type = type;
    d.variables.back().dimensions = std::move(dimensions);
    d.variables.back().over_time = over_time;
  };
  add("lat", WEIR_FLOAT64, {0}, false);
  for (int i = 0; i < 7; i++) d.variables.back().values.push_back(60 - i * 10);
  d.variables.back().attributes = {{"standard_name", "latitude"}};
  add("lon", WEIR_FLOAT64, {1}, false);
  for (int i = 0; i < 13; i++) d.variables.back().values.push_back(i * 10);
  d.variables.back().attributes = {{"standard_name", "longitude"}};
  add("time", WEIR_FLOAT64, {}, true);
  d.variables.back().attributes = {{"units", "seconds since 2000-01-01 00:00:00"}};
  add("plev", WEIR_FLOAT64, {2}, false);
  d.variables.back().values = {850, 500, 250};
  d.variables.back().attributes = {{"units", "hPa"}};
  // Edition 1 has seconds in steps alone.
  if (format == "grib1") d.keys = {{"reference_time", std::string("run"), ""}};
  add("t", WEIR_FLOAT32, {2, 0, 1}, true);
  add("sp", WEIR_FLOAT64, {0, 1}, true);
  d.variables.back().fill = -9999;
  add("u", WEIR_FLOAT64, {2, 0, 1}, true);
  if (format == "grib2")
    d.variables.back().keys = {{"packingType", std::string("grid_ccsds"), ""}};
  return d;
}

inline FileDescription odd_description(const std::string& format) {
  if (format == "grib2" || format == "grib1") return odd_description_of_grib(format);
  FileDescription d;
  d.dimensions = {{"y", 7}, {"x", 13}, {"lev", 3}, {"time", 0}, {"one", 1}};
  d.time = 3;
  const auto add = [&](const char* name, Type type, std::vector<int> dimensions, bool over_time) {
    Variable v;
    v.name = name;
    v.type = type;
    v.dimensions = std::move(dimensions);
    v.over_time = over_time;
    d.variables.push_back(v);
  };
  add("x", WEIR_FLOAT64, {1}, false);
  for (int i = 0; i < 13; i++) d.variables[0].values.push_back(i * 0.5);
  add("time", WEIR_FLOAT64, {}, true);
  add("fixed", WEIR_FLOAT64, {0, 1}, false);
  add("a8", WEIR_INT8, {0, 1}, true);
  add("a16", WEIR_INT16, {0, 1}, true);
  add("a32", WEIR_INT32, {2, 0, 1}, true);
  if (format != "cdf2") add("a64", WEIR_INT64, {0, 1}, true);
  add("f32", WEIR_FLOAT32, {2, 0, 1}, true);
  add("f64", WEIR_FLOAT64, {4, 0, 1}, true);
  d.variables.back().fill = -9999;
  d.variables.back().attributes = {{"units", "K"}, {"valid_min", -100.0}};
  d.attributes = {{"title", "odd shapes"}, {"number", 2.5}};
  return d;
}

inline Written write_file(const std::string& format_name, FileDescription description,
                          const std::string& path, int owners, int64_t records,
                          int64_t piece = 17) {
  Written w{std::move(description), path, {}};
  std::string why;
  Format* format = find_format(format_name, &why);
  if (!format) return {w.description, path, Status(WEIR_E_FORMAT, why)};
  TeamOfThreads team(owners);
  team.run([&](Team& mine) {
    const auto body = [&]() -> Status {
      auto file = format->create(w.description, path, {}, mine);
      if (!file.ok()) return file.status();
      for (int64_t r = 0; r < records; r++) {
        const Status wrote =
            write_record(*format, **file, w.description, r, mine.rank(), mine.size(), piece);
        const Status ended = (*file)->end_record(r);
        if (!wrote.ok() || !ended.ok()) return wrote.ok() ? ended : wrote;
      }
      return (*file)->close();
    };
    const Status status = body();
    if (mine.rank() == 0) w.status = status;
  });
  return w;
}

inline Written odd_file(const std::string& format, const std::string& path, int owners,
                        int64_t records, int64_t piece = 17) {
  return write_file(format, odd_description(format), path, owners, records, piece);
}

// Every element of records [0, records) is what value_at says.
inline void expect_contents(const Written& w, int64_t records) {
  auto reader = open_reader(w.path);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  for (int v = 0; v < static_cast<int>(w.description.variables.size()); v++) {
    const Variable& variable = w.description.variables[static_cast<size_t>(v)];
    auto found = (*reader)->find(w.description, v);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->type, variable.type) << variable.name;
    EXPECT_EQ(found->elements(), w.description.elements(variable)) << variable.name;
    EXPECT_EQ(found->over_time, variable.over_time) << variable.name;
    EXPECT_EQ(found->records, variable.over_time ? records : 1) << variable.name;
    if (!variable.values.empty()) continue;
    for (int64_t r = 0; r < found->records; r++) {
      const int64_t n = found->elements();
      // All of it, and an inner part that begins and ends in the middle of rows.
      for (auto [first, count] : {std::pair<int64_t, int64_t>{0, n}, {n / 3, n - n / 3 - n / 4}}) {
        const std::vector<char> want =
            values_of(variable.type, v, r, first, count, ByteOrder::kNative);
        std::vector<char> have(want.size());
        const Status read = (*reader)->read(variable.name, r, first, count, have.data());
        ASSERT_TRUE(read.ok()) << read.message();
        EXPECT_EQ(have, want) << w.path << " " << variable.name << " record " << r;
      }
    }
  }
}

}  // namespace weir::output
