// SPDX-License-Identifier: Apache-2.0
// weir-write-stream FORMAT STREAM PATH RECORDS OWNERS [COMPRESSION:LEVEL]: a file as the engine
// would write it, with values known by formula, for readers that are not weir's: see
// test_readers.py, which has the same formula. STREAM: lonlat, gaussian, plane, curvilinear,
// unstructured, mean (with bounds of time and of an axis), two (grids), many:N (N more fields).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

#include "output/cf/describe.h"
#include "output/format/format.h"
#include "output/format/team_of_threads.h"

namespace weir::output {
namespace {

constexpr int64_t kNx = 12, kNy = 6, kLevels = 4;
constexpr double kMissing = -999;

std::vector<double> steps(int64_t n, double first, double step) {
  std::vector<double> out;
  for (int64_t i = 0; i < n; i++) out.push_back(first + step * static_cast<double>(i));
  return out;
}

int add_grid(Catalogue& c, const std::string& name, GridKind kind) {
  Grid g;
  g.name = name;
  g.kind = kind;
  g.nx = kind == GridKind::kUnstructured ? kNx * kNy : kNx;
  g.ny = kind == GridKind::kUnstructured ? 1 : kNy;
  if (kind == GridKind::kPlane) {
    g.x = steps(kNx, 0, 1000);
    g.y = steps(kNy, 0, 1000);
  } else if (kind == GridKind::kLonLat || kind == GridKind::kGaussian) {
    g.x = steps(kNx, 0, 30);
    g.y = steps(kNy, 75, -30);
  } else {
    g.lonlat_decomposition = static_cast<int>(c.decompositions.size());
  }
  c.grids.push_back(g);
  Decomposition d;
  d.name = name;
  d.grid = static_cast<int>(c.grids.size()) - 1;
  c.decompositions.push_back(d);
  return d.grid;
}

int add_field(Catalogue& c, const char* name, const char* standard_name, const char* units,
              int decomposition, std::vector<int> axes, Type type) {
  Field f;
  f.name = name;
  f.type = f.file_type = type;
  f.decomposition = decomposition;
  f.axes = std::move(axes);
  f.attributes = {{"standard_name", standard_name},
                  {"long_name", std::string("the field ") + name},
                  {"units", units}};
  c.fields.push_back(f);
  return static_cast<int>(c.fields.size()) - 1;
}

int add_levels(Catalogue& c) {
  Axis a;
  a.name = "plev";
  a.units = "Pa";
  a.values = {100000, 85000, 50000, 20000};
  a.bounds = {101000, 92500, 92500, 67500, 67500, 35000, 35000, 10000};
  a.attributes = {
      {"standard_name", "air_pressure"}, {"long_name", "pressure"}, {"positive", "down"}};
  c.axes.push_back(a);
  return 0;
}

Catalogue make(const std::string& what, Stream& stream) {
  static const std::map<std::string, GridKind> kinds = {{"lonlat", GridKind::kLonLat},
                                                        {"gaussian", GridKind::kGaussian},
                                                        {"plane", GridKind::kPlane},
                                                        {"curvilinear", GridKind::kCurvilinear},
                                                        {"unstructured", GridKind::kUnstructured}};
  Catalogue c;
  c.reference = "2026-11-21 00:00:00";
  c.attributes = {{"title", "weir's test of formats"},
                  {"institution", "none"},
                  {"source", "a formula"},
                  {"references", "none"}};
  const auto kind = kinds.find(what);
  add_grid(c, "g", kind == kinds.end() ? GridKind::kLonLat : kind->second);
  const int levels = add_levels(c);
  const int t = add_field(c, "ta", "air_temperature", "K", 0, {levels}, WEIR_FLOAT32);
  const int p = add_field(c, "ps", "surface_air_pressure", "Pa", 0, {}, WEIR_FLOAT64);
  c.fields[static_cast<size_t>(p)].missing = kMissing;
  stream.name = what;
  const bool mean = what == "mean";
  stream.fields = {{t, mean ? WEIR_MEAN : WEIR_INSTANT, {}, {}, {}}, {p, WEIR_INSTANT, {}, {}, {}}};
  if (mean) {
    c.fields.push_back(c.fields[static_cast<size_t>(p)]);
    c.fields.back().name = "ps_max";
    stream.fields.push_back({static_cast<int>(c.fields.size()) - 1, WEIR_MAXIMUM, {}, {}, {}});
  }
  if (what == "two") {
    add_grid(c, "ocean", GridKind::kCurvilinear);
    stream.fields.push_back(
        {add_field(c, "tos", "sea_surface_temperature", "degC", 1, {}, WEIR_FLOAT32),
         WEIR_INSTANT,
         {},
         {},
         {}});
  }
  constexpr const char* kMany = "many:";
  for (int i = 0; what.rfind(kMany, 0) == 0 && i < std::atoi(what.c_str() + 5); i++) {
    const std::string name = "p" + std::to_string(i);
    stream.fields.push_back(
        {add_field(c, name.c_str(), "air_pressure", "Pa", 0, {}, WEIR_FLOAT32), WEIR_INSTANT,
         {}, {}, {}});
  }
  c.streams = {stream};
  return c;
}

// What the variable's element is: the formula of fields, real times, plausible places.
double value_of(const StreamFile& s, int variable, int64_t record, int64_t element) {
  if (variable == s.time) return 3600.0 * static_cast<double>(record + 1);
  if (variable == s.time_bounds) return 3600.0 * static_cast<double>(record + element);
  for (const LonLat& place : s.lonlat) {
    if (variable == place.lon) return 30.0 * static_cast<double>(element % kNx);
    if (variable == place.lat) return 75.0 - 30.0 * static_cast<double>(element / kNx);
  }
  const bool missing = s.file.variables[static_cast<size_t>(variable)].fill && element % 10 == 3;
  return missing ? kMissing : 200 + static_cast<double>((record * 31 + element) % 97);
}

Status write_all(const StreamFile& s, Format& format, File& file, int64_t record, int owner,
                 int owners) {
  for (int v = 0; v < static_cast<int>(s.file.variables.size()); v++) {
    const Variable& variable = s.file.variables[static_cast<size_t>(v)];
    if (!variable.values.empty() || (!variable.over_time && record > 0)) continue;
    const int64_t granule = format.granule(s.file, v), elements = s.file.elements(variable);
    const int64_t part = granule == 1 ? (elements + owners - 1) / owners : granule;
    for (int64_t first = owner * part; first < elements; first += owners * part) {
      const int64_t count = std::min(part, elements - first);
      std::vector<char> bytes;
      for (int64_t i = 0; i < count; i++) {
        const double value = value_of(s, v, record, first + i);
        const float narrow = static_cast<float>(value);
        const size_t size = size_of(variable.type);
        std::vector<char> one(size);
        std::memcpy(one.data(), size == 4 ? static_cast<const void*>(&narrow) : &value, size);
        if (format.byte_order() == ByteOrder::kBig) std::reverse(one.begin(), one.end());
        bytes.insert(bytes.end(), one.begin(), one.end());
      }
      WEIR_TRY(file.write(v, record, first, count, bytes.data()));
    }
  }
  return {};
}

Status write_file(const StreamFile& s, Format& format, const char* path, int64_t records,
                  Team& team) {
  auto file = format.create(s.file, path, {}, team);
  if (!file.ok()) return file.status();
  for (int64_t r = 0; r < records; r++) {
    WEIR_TRY(team.agree(write_all(s, format, **file, r, team.rank(), team.size())));
    WEIR_TRY((*file)->end_record(r));
  }
  return (*file)->close();
}

int run(int argc, char** argv) {
  if (argc < 6) return 2;
  Stream stream;
  if (argc > 6) {
    Compression compression;
    compression.kind = std::strncmp(argv[6], "zstd", 4) == 0 ? Compression::Kind::kZstd
                                                             : Compression::Kind::kDeflate;
    compression.level = std::atoi(std::strchr(argv[6], ':') + 1);
    stream.compression = compression;
  }
  const Catalogue catalogue = make(argv[2], stream);
  std::string why;
  Format* format = find_format(argv[1], &why);
  Result<StreamFile> described = describe(catalogue, catalogue.streams[0]);
  if (!format || !described.ok()) {
    std::fprintf(stderr, "%s%s\n", why.c_str(), described.status().message().c_str());
    return 1;
  }
  Status result;
  TeamOfThreads(std::atoi(argv[5])).run([&](Team& team) {
    const Status status = write_file(*described, *format, argv[3], std::atoll(argv[4]), team);
    if (team.rank() == 0) result = status;
  });
  if (!result.ok()) std::fprintf(stderr, "%s\n", result.message().c_str());
  return result.ok() ? 0 : 1;
}

}  // namespace
}  // namespace weir::output

int main(int argc, char** argv) { return weir::output::run(argc, argv); }
