// SPDX-License-Identifier: Apache-2.0
// What the configuration says, as plain data: how output is done (Settings) and what it changes of
// the program's streams (choices, by name). A configuration is text, TOML or a Fortran namelist in
// WRF's names, with WEIR_OUTPUT_* of the environment above it. Rank 0 of the world reads file and
// environment (Source), sends them to all, and every rank parses the same bytes: so all have the
// same error, or none.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "output/core/status.h"
#include "output/model/catalogue.h"

namespace weir::output {

enum class Mode { kSerial, kCollective, kServers, kServersParallel };
enum class Placement { kLast, kSpread, kNodes };
enum class TransportKind { kAuto, kShared, kRma, kTwoSided };

struct Settings {
  Mode mode = Mode::kSerial;
  int64_t groups = 1, servers_per_group = 1;  // of the modes with servers
  Placement placement = Placement::kLast;
  int64_t aggregators = 0;                  // of mode collective; 0: the engine's choice
  TransportKind transport = TransportKind::kAuto;
  int64_t server_memory_bytes = 256 << 20;
  int64_t client_memory_bytes = 0;          // 0: two slots of every stream
  double time_limit_s = 300;
  int64_t encode_threads = 1;                  // of an owner, for messages of GRIB
  bool sync = false, verbose = false;
  std::string directory, run;                  // see Source; not of the configuration

  bool has_servers() const { return mode == Mode::kServers || mode == Mode::kServersParallel; }
  int64_t servers() const { return has_servers() ? groups * servers_per_group : 0; }
};

// A place in a configuration, for messages: "output.toml:12:3", "WEIR_OUTPUT_MODE".
using Place = std::string;

struct FieldChoice {
  std::string name;
  std::optional<std::string> as;  // its name in the files
  std::optional<weir_operation> operation;
  std::optional<Compression> compression;
  std::vector<int64_t> chunk;
  std::optional<Rounding> rounding;
  FormatKeys keys;
  Place place;
  std::vector<std::pair<std::string, Place>> places;  // of its keys
};

// What is said of the stream of this name; what is not set is the program's.
struct StreamChoice {
  std::string name;
  bool enabled = true;
  bool must_exist = true;  // false: WRF's namelists speak of domains which the program may not have
  std::optional<std::string> path, format;
  std::optional<double> every_s;
  std::optional<int64_t> every_steps, rotation;  // rotation 0 with a period
  std::optional<Period> period;
  std::optional<Existing> existing;
  std::optional<Compression> compression;
  std::optional<Rounding> rounding;
  std::vector<std::pair<std::string, std::string>> hints;
  FormatKeys keys;
  std::optional<std::vector<FieldChoice>> fields;  // replaces the program's list
  Place place;
  // Of its keys, where the text has one for each.
  std::vector<std::pair<std::string, Place>> places;
};

struct Config {
  Settings settings;
  std::vector<StreamChoice> streams;
  std::string source;                 // path of the file, or "defaults"
  std::vector<std::string> overrides; // "WEIR_OUTPUT_MODE=servers", as taken from the environment
  std::vector<std::string> warnings;  // each a sentence with its place
};

// File and environment as they are on one rank.
struct Source {
  std::string path;  // "": no file
  std::string text;
  // Of the WEIR_OUTPUT_* that are set.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory = {};  // in which the process was: where relative paths begin
  std::string run = {};     // a word that no other run has
};

// path null or "": the file that WEIR_OUTPUT_CONFIG names, else none. Reads the calling process's
// environment.
Result<Source> load_source(const char* path);
std::vector<char> encode_source(const Source& source);
Result<Source> decode_source(std::span<const char> bytes);

// Errors are WEIR_E_CONFIG: "output.toml:3:8: ...", with what was expected.
Result<Config> parse_config(const Source& source);

// Change the catalogue's streams as the configuration says; disabled streams are removed from
// `catalogue.streams`' work by having no fields. Errors: a stream or field that does not exist;
// what the program's streams cannot be with these choices, with the place of the choice.
Status apply_config(const Config& config, Catalogue& catalogue);

const char* name_of(Mode mode);
const char* name_of(Placement placement);
const char* name_of(TransportKind transport);

// "none", "deflate:1" ... "deflate:9", "zstd:1" ... "zstd:19".
Result<Compression> parse_compression(const std::string& text);
// "day", "month", "year".
Result<Period> parse_period(const std::string& text);
// "replace", "refuse", "append".
Result<Existing> parse_existing(const std::string& text);
// "256MiB", "4096", "1.5GiB"; decimal units (MB) too.
Result<int64_t> parse_size(const std::string& text);

}  // namespace weir::output
