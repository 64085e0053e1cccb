// SPDX-License-Identifier: Apache-2.0
#include "output/config/settings.h"

#include <charconv>
#include <cmath>

#include "output/model/text.h"

namespace weir::output {
namespace {

const Status kOther(WEIR_E_CONFIG, "another value");  // the caller says what was expected

template <typename E>
Status set_choice(E* target, const Value& value, int count) {
  const std::string* text = std::get_if<std::string>(&value);
  for (int i = 0; text && i < count; i++) {
    if (*text == name_of(static_cast<E>(i))) {
      *target = static_cast<E>(i);
      return {};
    }
  }
  return kOther;
}

Status set_count(int64_t* target, const Value& value, int64_t low) {
  const int64_t* number = std::get_if<int64_t>(&value);
  constexpr int64_t kMost = 1 << 20;
  if (!number || *number < low || *number > kMost) return kOther;
  *target = *number;
  return {};
}

Status set_size(int64_t* target, const Value& value, int64_t low) {
  Result<int64_t> size =
      std::holds_alternative<bool>(value) ? Result<int64_t>(kOther) : parse_size(value_text(value));
  if (!size.ok() || (*size < low && *size != 0) || (*size == 0 && low > 0)) return kOther;
  *target = *size;
  return {};
}

Status set_flag(bool* target, const Value& value) {
  const bool* flag = std::get_if<bool>(&value);
  const int64_t* number = std::get_if<int64_t>(&value);  // WEIR_OUTPUT_SYNC=1
  if (!flag && !(number && (*number == 0 || *number == 1))) return kOther;
  *target = flag ? *flag : *number == 1;
  return {};
}

Status set_seconds(double* target, const Value& value) {
  const int64_t* whole = std::get_if<int64_t>(&value);
  const double* number = std::get_if<double>(&value);
  const double seconds = whole ? static_cast<double>(*whole) : number ? *number : -1;
  if (!(seconds > 0 && seconds <= 1e9)) return kOther;
  *target = seconds;
  return {};
}

}  // namespace

const std::vector<SettingKey>& setting_keys() {
  static const std::vector<SettingKey> keys = {
      {"mode", "WEIR_OUTPUT_MODE",
       "\"serial\", \"collective\", \"servers\" or \"servers+parallel\"",
       [](Settings& s, const Value& v) { return set_choice(&s.mode, v, 4); }},
      {"groups", "WEIR_OUTPUT_GROUPS", "a number of groups from 1",
       [](Settings& s, const Value& v) { return set_count(&s.groups, v, 1); }},
      {"servers_per_group", "WEIR_OUTPUT_SERVERS_PER_GROUP", "a number of ranks from 1",
       [](Settings& s, const Value& v) { return set_count(&s.servers_per_group, v, 1); }},
      {"placement", "WEIR_OUTPUT_PLACEMENT", "\"last\", \"spread\" or \"nodes\"",
       [](Settings& s, const Value& v) { return set_choice(&s.placement, v, 3); }},
      {"aggregators", "WEIR_OUTPUT_AGGREGATORS", "a number of ranks, or 0 for weir's choice",
       [](Settings& s, const Value& v) { return set_count(&s.aggregators, v, 0); }},
      {"transport", "WEIR_OUTPUT_TRANSPORT", "\"auto\", \"shared\", \"rma\" or \"two-sided\"",
       [](Settings& s, const Value& v) { return set_choice(&s.transport, v, 4); }},
      {"server_memory", "WEIR_OUTPUT_SERVER_MEMORY", "a size of at least 1 MiB, such as \"256MiB\"",
       [](Settings& s, const Value& v) { return set_size(&s.server_memory_bytes, v, 1 << 20); }},
      {"client_memory", "WEIR_OUTPUT_CLIENT_MEMORY",
       "a size such as \"512MiB\", or 0 for what two frames of every stream need",
       [](Settings& s, const Value& v) { return set_size(&s.client_memory_bytes, v, 0); }},
      {"encode_threads", "WEIR_OUTPUT_ENCODE_THREADS", "a number of threads from 1",
       [](Settings& s, const Value& v) { return set_count(&s.encode_threads, v, 1); }},
      {"time_limit_s", "WEIR_OUTPUT_TIME_LIMIT_S", "seconds above 0",
       [](Settings& s, const Value& v) { return set_seconds(&s.time_limit_s, v); }},
      {"sync", "WEIR_OUTPUT_SYNC", "true or false",
       [](Settings& s, const Value& v) { return set_flag(&s.sync, v); }},
      {"verbose", "WEIR_OUTPUT_VERBOSE", "true or false",
       [](Settings& s, const Value& v) { return set_flag(&s.verbose, v); }},
  };
  return keys;
}

Value value_of_text(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  const char* end = text.data() + text.size();
  int64_t whole = 0;
  if (auto done = std::from_chars(text.data(), end, whole);
      done.ec == std::errc() && done.ptr == end)
    return whole;
  double number = 0;
  if (auto done = std::from_chars(text.data(), end, number);
      done.ec == std::errc() && done.ptr == end)
    return number;
  return text;
}

std::string value_text(const Value& value) {
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  if (const int64_t* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
  if (const double* number = std::get_if<double>(&value)) return number_text(*number);
  return std::get<bool>(value) ? "true" : "false";
}

Status check_settings(const Settings& settings) {
  if (settings.has_servers() && settings.groups > (int64_t{1} << 20) / settings.servers_per_group) {
    return {WEIR_E_CONFIG, std::to_string(settings.groups) + " groups of " +
                               std::to_string(settings.servers_per_group) +
                               " ranks: more than a million servers"};
  }
  return {};
}

Status apply_environment(const Source& source, Config* config) {
  for (const auto& [name, text] : source.environment) {
    for (const SettingKey& key : setting_keys()) {
      if (name != key.variable) continue;
      if (!key.set(config->settings, value_of_text(text)).ok()) {
        return {WEIR_E_CONFIG, "environment: " + name + "=" + text + ": expected " + key.expected};
      }
      config->overrides.push_back(name + "=" + text);
    }
  }
  return {};
}

}  // namespace weir::output
