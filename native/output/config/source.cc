// SPDX-License-Identifier: Apache-2.0
// Where a configuration comes from, and how it travels from rank 0 to the others.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>

#include "output/config/settings.h"
#include "output/model/text.h"

namespace weir::output {
namespace {

constexpr size_t kLargestFile = 16 << 20;

Result<std::string> read_text(const std::string& path) {
  const auto failed = [&](int error) {
    return Status(WEIR_E_CONFIG,
                  path + ": the configuration cannot be read: " + std::strerror(error));
  };
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) return failed(errno);
  std::string text;
  char part[1 << 16];
  while (const size_t got = std::fread(part, 1, sizeof part, file.get())) {
    text.append(part, got);
    if (text.size() > kLargestFile)
      return Status(WEIR_E_CONFIG, path + ": a configuration of more than 16 MiB is none");
  }
  if (std::ferror(file.get())) return failed(errno);
  return text;
}

void put(std::vector<char>* bytes, const std::string& text) {
  const uint64_t size = text.size();
  const char* from = reinterpret_cast<const char*>(&size);
  bytes->insert(bytes->end(), from, from + sizeof size);
  bytes->insert(bytes->end(), text.begin(), text.end());
}

bool take(std::span<const char>* bytes, std::string* text) {
  uint64_t size = 0;
  if (bytes->size() < sizeof size) return false;
  std::memcpy(&size, bytes->data(), sizeof size);
  *bytes = bytes->subspan(sizeof size);
  if (size > bytes->size()) return false;
  text->assign(bytes->data(), size);
  *bytes = bytes->subspan(size);
  return true;
}

// TOML never begins with an ampersand; a namelist does, behind comments and text that Fortran
// passes over.
bool is_namelist(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t first = text.find_first_not_of(" \t\r\n", at);
    if (first == std::string::npos) return false;
    if (text[first] == '&') return true;
    if (text[first] != '!') return false;
    at = std::min(text.find('\n', first), text.size());
  }
  return false;
}

// Empty when the directory has been removed, or is out of reach: relative paths stay what they are.
std::string current_directory() {
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::current_path(error);
  return error ? std::string() : directory.string();
}

std::string new_word() {
  std::random_device random;
  char text[20];
  std::snprintf(text, sizeof text, "%08x%08x", random(), random());
  return text;
}

// A setting that is misspelt would be none.
Status check_names_of_environment() {
  std::vector<std::string> known = {"WEIR_OUTPUT_CONFIG"};
  const std::string prefix = known[0].substr(0, known[0].rfind('_') + 1);
  known.push_back(prefix + "LIBRARIES");  // where the Python package looks for them
  for (const SettingKey& key : setting_keys()) known.emplace_back(key.variable);
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    if (name.rfind(prefix, 0) != 0 || std::find(known.begin(), known.end(), name) != known.end())
      continue;
    return {WEIR_E_CONFIG, "environment: there is no setting " + name + did_you_mean(name, known)};
  }
  return {};
}

}  // namespace

Result<Source> load_source(const char* path) {
  Source source;
  const char* named = std::getenv("WEIR_OUTPUT_CONFIG");
  source.path = path && *path ? path : named ? named : "";
  source.directory = current_directory();
  source.run = new_word();
  WEIR_TRY(check_names_of_environment());
  for (const SettingKey& key : setting_keys()) {
    const char* value = std::getenv(key.variable);
    if (value && *value) source.environment.emplace_back(key.variable, value);
  }
  if (source.path.empty()) return source;
  Result<std::string> text = read_text(source.path);
  if (!text.ok()) return text.status();
  source.text = std::move(*text);
  return source;
}

std::vector<char> encode_source(const Source& source) {
  std::vector<char> bytes;
  put(&bytes, source.path);
  put(&bytes, source.text);
  put(&bytes, source.directory);
  put(&bytes, source.run);
  for (const auto& [name, value] : source.environment) {
    put(&bytes, name);
    put(&bytes, value);
  }
  return bytes;
}

Result<Source> decode_source(std::span<const char> bytes) {
  const Status damaged(WEIR_E_INTERNAL, "the configuration that rank 0 sent is damaged");
  Source source;
  for (std::string* text : {&source.path, &source.text, &source.directory, &source.run}) {
    if (!take(&bytes, text)) return damaged;
  }
  while (!bytes.empty()) {
    auto& [name, value] = source.environment.emplace_back();
    if (!take(&bytes, &name) || !take(&bytes, &value)) return damaged;
  }
  return source;
}

Result<Config> parse_config(const Source& source) {
  Result<Config> config =
      is_namelist(source.text) ? parse_wrf_namelist(source) : parse_toml(source);
  if (!config.ok()) return config;
  config->source = source.path.empty() ? "defaults" : source.path;
  config->settings.directory = source.directory;
  config->settings.run = source.run;
  WEIR_TRY(apply_environment(source, &*config));
  if (Status status = check_settings(config->settings); !status.ok())
    return Status(WEIR_E_CONFIG, config->source + ": " + status.message());
  return config;
}

}  // namespace weir::output
