// SPDX-License-Identifier: Apache-2.0
#include "output/config/config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "output/cf/describe.h"
#include "output/model/sample.h"

namespace weir::output {
namespace {

Result<Config> read(const std::string& text,
                    std::vector<std::pair<std::string, std::string>> environment = {}) {
  return parse_config({"o.toml", text, std::move(environment)});
}

std::string reported(const std::string& text,
                     std::vector<std::pair<std::string, std::string>> environment = {}) {
  Result<Config> config = read(text, std::move(environment));
  return config.ok() ? "fine" : config.status().message();
}

TEST(config, nothing_is_mode_serial) {
  Result<Config> config = parse_config({});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->settings.mode, Mode::kSerial);
  EXPECT_EQ(config->settings.server_memory_bytes, 256 << 20);
  EXPECT_EQ(config->settings.servers(), 0);
  EXPECT_EQ(config->source, "defaults");
}

TEST(config, every_key_is_read) {
  Result<Config> config = read(R"(
[output]
mode = "servers+parallel"
groups = 3
servers_per_group = 4
placement = "spread"
aggregators = 7
transport = "two-sided"
server_memory = "1.5GiB"
client_memory = 1048576
encode_threads = 3
time_limit_s = 12.5
sync = true
verbose = true
[stream.history]
path = "out/%Y_{step}.nc"
format = "netcdf4"
every_s = 3600
rotation = 4
compression = "zstd:3"
keep_information = 0.99
enabled = false
[stream.history.hints]
striping_factor = 16
romio_cb_write = "enable"
[[stream.history.field]]
name = "u"
operation = "mean"
compression = "deflate:4"
chunk = [1, 100, 200]
[[stream.history.field]]
name = "v"
[stream.restart]
every_steps = 10
)");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const Settings& s = config->settings;
  EXPECT_EQ(s.mode, Mode::kServersParallel);
  EXPECT_EQ(s.servers(), 12);
  EXPECT_EQ(s.placement, Placement::kSpread);
  EXPECT_EQ(s.aggregators, 7);
  EXPECT_EQ(s.transport, TransportKind::kTwoSided);
  EXPECT_EQ(s.server_memory_bytes, 3ll << 29);
  EXPECT_EQ(s.client_memory_bytes, 1 << 20);
  EXPECT_EQ(s.encode_threads, 3);
  EXPECT_EQ(s.time_limit_s, 12.5);
  EXPECT_TRUE(s.sync && s.verbose);
  ASSERT_EQ(config->streams.size(), 2u);
  const StreamChoice& history = config->streams[0];
  EXPECT_EQ(history.name, "history");
  EXPECT_EQ(*history.every_s, 3600);
  EXPECT_EQ(*history.rotation, 4);
  EXPECT_FALSE(history.enabled);
  EXPECT_EQ(history.hints, (std::vector<std::pair<std::string, std::string>>{
                               {"romio_cb_write", "enable"}, {"striping_factor", "16"}}));
  ASSERT_EQ(history.fields->size(), 2u);
  EXPECT_EQ(*(*history.fields)[0].operation, WEIR_MEAN);
  EXPECT_EQ((*history.fields)[0].compression->kind, Compression::Kind::kDeflate);
  ASSERT_TRUE(history.rounding.has_value());
  EXPECT_EQ(history.rounding->information, 0.99);
  EXPECT_FALSE((*history.fields)[0].rounding.has_value());
  EXPECT_EQ((*history.fields)[0].chunk, (std::vector<int64_t>{1, 100, 200}));
  EXPECT_EQ((*history.fields)[1].place, "o.toml:31:1");
  EXPECT_EQ(*config->streams[1].every_steps, 10);
}

TEST(config, each_mistake_is_reported_with_its_place) {
  const std::pair<const char*, const char*> cases[] = {
      {"[output]\nmode = \"serve\"",
       "o.toml:2:8: mode is 'serve'; expected \"serial\", \"collective\""},
      {"[output]\nmode = 3", "o.toml:2:8: mode is '3'; expected"},
      {"[output]\ngroup = 3", "o.toml:2:1: [output] has no key 'group'; did you mean 'groups'?"},
      {"[output]\nzzzzzzzz = 3", "; expected mode, groups, servers_per_group"},
      {"[output]\ngroups = 0", "o.toml:2:10: groups is '0'; expected a number of groups from 1"},
      {"[output]\ngroups = 1.5", "expected a number of groups from 1"},
      {"[output]\ngroups = [1]", "groups is a list"},
      {"[output]\ngroups = true", "expected a number of groups from 1"},
      {"[output]\nserver_memory = \"12 bananas\"", "expected a size of at least 1 MiB"},
      {"[output]\nserver_memory = 100", "expected a size of at least 1 MiB"},
      {"[output]\nencode_threads = 0", "encode_threads is '0'; expected a number of threads"},
      {"[stream.h]\nkeep_bits = 53", "o.toml:2:13: keep_bits is '53'; expected bits of"},
      {"[stream.h]\nkeep_information = 0", "keep_information is '0'; expected the share"},
      {"[output]\ntime_limit_s = 0", "expected seconds above 0"},
      {"[output]\ntime_limit_s = nan", "expected seconds above 0"},
      {"[output]\nsync = \"yes\"", "expected true or false"},
      {"[output]\nsync = 2026-01-01", "expected true or false"},
      {"output = 3", "o.toml:1:10: output is '3'; expected a table [output]"},
      {"[outptu]", "the file has no key 'outptu'; did you mean 'output'?"},
      {"[output]\nmode = ", "o.toml:2:"},
      {"[output]\nmode = \"serial\"\nmode = \"serial\"", "o.toml:3:"},
      {"[stream.h]\nevery = 3",
       "o.toml:2:1: [stream.h] has no key 'every'; did you mean 'every_s'?"},
      {"[stream.h]\nevery_s = -1", "expected seconds above 0"},
      {"[stream.h]\nevery_s = \"3600\"", "expected seconds above 0"},
      {"[stream.h]\nevery_s = 1\nevery_steps = 2",
       "o.toml:3:15: every_s and every_steps are both given"},
      {"[stream.h]\nrotation = -1", "expected a number of frames"},
      {"[stream.h]\npath = \"a_%q\"", "o.toml:2:8: path 'a_%q': '%q': expected one of"},
      {"[stream.h]\nformat = \"grib\"", "format is 'grib'; expected \"cdf5\""},
      {"[stream.h]\ncompression = \"zstd:99\"", "o.toml:2:15: compression 'zstd:99': expected"},
      {"[stream.h]\nhints = 3", "expected a table of MPI_Info keys"},
      {"[stream.h]\nfield = 3", "with two brackets"},
      {"[[stream.h.field]]\noperation = \"mean\"", "has no name"},
      {"[[stream.h.field]]\nname = \"u\"\noperation = \"avg\"",
       "operation is 'avg'; expected instant, mean"},
      {"[[stream.h.field]]\nname = \"u\"\nchunk = [0]", "a list of numbers from 1"},
      {"[[stream.h.field]]\nname = \"u\"\n[[stream.h.field]]\nname = \"u\"",
       "field 'u' is in the stream twice"},
      {"[stream.\"a b\"]", "o.toml:1:1: stream 'a b': the name has ' ' in it; expected a letter"},
      {"stream = 1", "expected tables [stream.<name>]"},
      {"[stream.h]\nformat = \"cdf5\"\ncompression = \"zstd:3\"",
       "o.toml:2:10: format 'cdf5' has no compression, which the stream asks for"},
      {"[stream.h]\nformat = \"cdf2\"\n[[stream.h.field]]\nname = \"u\"\ncompression = "
       "\"deflate:1\"",
       "o.toml:2:10: format 'cdf2' has no compression"},
      {"[stream.h]\nformat = \"cdf5\"\ncompression = \"none\"", "fine"},
  };
  for (const auto& [text, says] : cases)
    EXPECT_NE(reported(text).find(says), std::string::npos)
        << text << "\n  but: " << reported(text);
}

TEST(config, the_environment_goes_before_the_file) {
  Result<Config> config =
      read("[output]\nmode = \"serial\"\ngroups = 2\n", {{"WEIR_OUTPUT_MODE", "servers"},
                                                         {"WEIR_OUTPUT_SYNC", "1"},
                                                         {"WEIR_OUTPUT_SERVER_MEMORY", "8MiB"},
                                                         {"WEIR_OUTPUT_TIME_LIMIT_S", "1.5"}});
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->settings.mode, Mode::kServers);
  EXPECT_EQ(config->settings.groups, 2);
  EXPECT_TRUE(config->settings.sync);
  EXPECT_EQ(config->settings.server_memory_bytes, 8 << 20);
  EXPECT_EQ(config->settings.time_limit_s, 1.5);
  EXPECT_EQ(config->overrides[0], "WEIR_OUTPUT_MODE=servers");
  EXPECT_EQ(reported("", {{"WEIR_OUTPUT_GROUPS", "two"}}),
            "environment: WEIR_OUTPUT_GROUPS=two: expected a number of groups from 1");
}

TEST(config, a_source_travels_as_it_is) {
  Source source{
      "p", std::string("a\0b", 3), {{"WEIR_OUTPUT_MODE", "serial"}, {"WEIR_OUTPUT_SYNC", ""}}};
  const std::vector<char> bytes = encode_source(source);
  Result<Source> back = decode_source(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->text, source.text);
  EXPECT_EQ(back->environment, source.environment);
  for (size_t n = 0; n < bytes.size(); n++) {
    Result<Source> part = decode_source(std::span(bytes).first(n));
    EXPECT_TRUE(!part.ok() || part->environment.size() < 2) << n;
  }
}

TEST(config, a_file_that_is_not_there_is_named) {
  Result<Source> source = load_source("nowhere/o.toml");
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().code(), WEIR_E_CONFIG);
  EXPECT_EQ(source.status().message(),
            "nowhere/o.toml: the configuration cannot be read: No such file or directory");
}

TEST(config, sizes_and_compressions) {
  EXPECT_EQ(*parse_size("4096"), 4096);
  EXPECT_EQ(*parse_size("2 MB"), 2000000);
  EXPECT_EQ(*parse_size("0.5KiB"), 512);
  for (const char* text : {"", "-1", "MiB", "1e9", "1XB", "nan", "inf", "9999999999999TiB"})
    EXPECT_FALSE(parse_size(text).ok()) << text;
  EXPECT_EQ(parse_compression("none")->kind, Compression::Kind::kNone);
  for (const char* text : {"", "zstd", "zstd:", "zstd:0", "zstd:20", "deflate:10", "lz4:1",
                           "deflate:4x", "deflate: 4"}) {
    EXPECT_FALSE(parse_compression(text).ok()) << text;
  }
}

TEST(config, streams_are_changed_by_name) {
  Catalogue c = small_catalogue();
  Result<Config> config = read(R"(
[stream.history]
path = "x_{step}.nc"
format = "netcdf4"
every_steps = 5
compression = "zstd:1"
[[stream.history.field]]
name = "ps"
chunk = [1, 4]
)");
  ASSERT_TRUE(config.ok()) << config.status().message();
  ASSERT_TRUE(apply_config(*config, c).ok());
  const Stream& s = c.streams[0];
  EXPECT_EQ(s.path, "x_{step}.nc");
  EXPECT_EQ(s.every_steps, 5);
  ASSERT_EQ(s.fields.size(), 1u);
  EXPECT_EQ(s.fields[0].field, 1);
  EXPECT_EQ(s.fields[0].operation, WEIR_MEAN) << "the program's";
  EXPECT_EQ(c.compression_of(s, s.fields[0]).kind, Compression::Kind::kZstd);
  EXPECT_EQ(c.compression_of(s, s.fields[0]).level, 1);
  EXPECT_EQ(c.chunk_of(s.fields[0]), (std::vector<int64_t>{1, 4}));
}

TEST(config, streams_and_fields_that_are_not_there_are_named) {
  const auto reported = [](const std::string& text) {
    Catalogue c = small_catalogue();
    Result<Config> config = read(text);
    return config.ok() ? apply_config(*config, c).message() : config.status().message();
  };
  EXPECT_EQ(reported("[stream.histroy]"),
            "o.toml:1:1: stream 'histroy' is not defined by the program; did you mean 'history'?");
  EXPECT_EQ(reported("[stream.history]\n[[stream.history.field]]\nname = \"xx\""),
            "o.toml:2:1: stream 'history' wants field 'xx', which the program does not define; it "
            "has t or ps");
}

TEST(config, what_the_programs_stream_cannot_be_is_reported_with_the_place_of_the_key) {
  const auto reported = [](const std::string& text, const char* format) {
    Catalogue c = small_catalogue();
    c.streams[0].format = format;
    c.streams[0].path = "x.nc";
    c.streams[0].rotation = 0;
    c.streams[0].fields[1].compression.reset();
    if (format_row(format).compresses)
      c.fields[0].compression = Compression{Compression::Kind::kDeflate, 1};
    Result<Config> config = read("[stream.history]\n" + text);
    if (!config.ok()) return config.status().message();
    const Status status = apply_config(*config, c);
    EXPECT_TRUE(status.ok() || status.code() == WEIR_E_CONFIG);
    EXPECT_EQ(c.streams[0].name, "history");
    return status.ok() ? "fine" : status.message();
  };
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"compression = \"zstd:3\"", "cdf5",
       "o.toml:2:15: stream 'history': cdf5: variable t asks for compression, which classic netCDF "
       "has not; use format netcdf4 or zarr"},
      {"every_s = 60\n[[stream.history.field]]\nname = \"ps\"\n[[stream.history.field]]\nname = "
       "\"t\"\ncompression = \"zstd:3\"",
       "cdf2", "o.toml:7:15: "},
      {"format = \"cdf5\"", "netcdf4", "fine"},
      {"format = \"zarr\"\ncompression = \"zstd:3\"", "cdf5", "fine"},
      {"compression = \"none\"\nformat = \"cdf5\"", "netcdf4", "fine"},
      {"rotation = 2", "cdf5", "o.toml:2:12: stream 'history': a new file begins"},
      {"rotation = 2\npath = \"x_{file}.nc\"", "cdf5", "fine"},
      {"[[stream.history.field]]\nname = \"t\"\nchunk = [1]", "netcdf4",
       "o.toml:4:9: stream 'history', field 't': a chunk of 1 numbers"},
  };
  for (const auto& [text, format, says] : cases)
    EXPECT_EQ(reported(text, format).find(says), 0u)
        << text << "\n  but: " << reported(text, format);
}

TEST(config, what_a_format_cannot_hold_is_reported_with_the_place_of_the_format_or_the_field) {
  const auto reported = [](const std::string& text, const char* format, int64_t nx) {
    Catalogue c = small_catalogue();
    c.grids[0].kind = GridKind::kCurvilinear;
    c.grids[0].nx = nx;
    c.grids[0].ny = 40000;
    Field count = c.fields[1];
    count.name = "count";
    count.type = count.file_type = WEIR_INT64;
    count.missing.reset();
    c.fields.push_back(count);
    Field lat = c.fields[1];
    lat.name = "lat";
    c.fields.push_back(lat);
    c.fields[0].chunk.clear();
    if (text.find("lat") != std::string::npos) c.grids[0].lonlat_decomposition = 0;
    Stream& stream = c.streams[0];
    stream.path = "x.nc";
    stream.rotation = 0;
    stream.format = format;
    stream.compression.reset();
    stream.fields = {{1, WEIR_INSTANT, {}, {}, {}}};
    Result<Config> config = read("[stream.history]\n" + text);
    if (!config.ok()) return config.status().message();
    const Status status = apply_config(*config, c);
    return status.ok() ? "fine" : status.message();
  };
  const std::string field = "\n[[stream.history.field]]\nname = ";
  const std::tuple<std::string, const char*, int64_t, const char*> cases[] = {
      {"format = \"cdf2\"", "cdf5", 100, "fine"},
      {"format = \"cdf2\"", "cdf5", 40000,
       "o.toml:2:10: stream 'history': cdf2: variable ps has 6400000000 bytes a record, the limit "
       "is 4 GiB; use format cdf5"},
      {"format = \"cdf2\"" + field + "\"count\"", "cdf5", 100,
       "o.toml:2:10: stream 'history': cdf2: variable count is of 64-bit integers"},
      {"every_s = 60" + field + "\"count\"", "cdf2", 100,
       "o.toml:4:8: stream 'history': cdf2: variable count is of 64-bit integers"},
      {"every_s = 60" + field + "\"count\"", "cdf5", 100, "fine"},
      {"format = \"netcdf4\"" + field + "\"ps\"\nchunk = [40000, 40000]", "cdf5", 40000,
       "o.toml:2:10: stream 'history': netcdf4: variable ps: a chunk of 6400000000 bytes; the "
       "limit is 4 GiB"},
      {"every_s = 60" + field + "\"ps\"\nchunk = [40000, 40000]", "netcdf4", 40000,
       "o.toml:5:9: stream 'history': netcdf4: variable ps: a chunk of"},
      {"format = \"netcdf4\"" + field + "\"ps\"\nchunk = [70000, 70000]", "cdf5", 40000,
       "o.toml:2:10: field 'ps': a chunk of 4.9e+09 elements is more than 4 GiB"},
      {"every_s = 60" + field + "\"lat\"", "cdf5", 100,
       "o.toml:4:8: stream history: two things would be called lat"},
      {"every_s = 60" + field + "\"p s\"", "cdf5", 100,
       "o.toml:4:8: field 'p s': the name has ' ' in it"},
  };
  for (const auto& [text, format, nx, says] : cases)
    EXPECT_EQ(reported(text, format, nx).find(says), 0u)
        << text << "\n  but: " << reported(text, format, nx);
}

TEST(config, a_disabled_stream_writes_nothing) {
  Catalogue c = small_catalogue();
  Result<Config> config = read("[stream.history]\nenabled = false");
  ASSERT_TRUE(config.ok() && apply_config(*config, c).ok());
  EXPECT_TRUE(c.streams[0].fields.empty());
}

TEST(config, any_text_is_refused_or_read) {
  constexpr uint64_t kSeed = 4;
  std::mt19937_64 random(kSeed);
  const std::string base =
      "[output]\nmode = \"servers\"\ngroups = 2\n[stream.h]\nevery_s = "
      "3600\n[[stream.h.field]]\nname = \"u\"\nchunk = [1, 2]\n";
  const std::string list =
      "&time_control\n history_interval = 3*60, 'a''b' /\n&namelist_quilt nio_groups(1)=2 /\n";
  int fine = 0;
  for (int i = 0; i < 4000; i++) {
    std::string text = i % 2 ? base : list;
    for (int n = static_cast<int>(random() % 5); n >= 0; n--) {
      if (text.empty()) break;
      const size_t at = random() % text.size();
      if (random() % 3 == 0) {
        text.erase(at, random() % 8);
      } else {
        text[at] = "[]=\"'\n#.&/*(),!0aZ\x80\xff"[random() % 20];
      }
    }
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " case " + std::to_string(i));
    Result<Config> config = read(text);
    if (config.ok()) {
      fine++;
    } else {
      ASSERT_EQ(config.status().code(), WEIR_E_CONFIG) << text;
      ASSERT_EQ(config.status().message().compare(0, 7, "o.toml:"), 0) << config.status().message();
    }
  }
  EXPECT_GT(fine, 0);
}

}  // namespace
}  // namespace weir::output
