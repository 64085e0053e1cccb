// SPDX-License-Identifier: Apache-2.0
// The keys of [output], which are also WEIR_OUTPUT_<KEY>: one table for both.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "output/config/config.h"

namespace weir::output {

// A value as TOML or the environment has it.
using Value = std::variant<std::string, int64_t, double, bool>;

struct SettingKey {
  const char* key;
  const char* variable;
  const char* expected;                           // "a number from 1", for messages
  Status (*set)(Settings& settings,
                const Value& value);  // any error: the value is not what is expected
};

const std::vector<SettingKey>& setting_keys();

// Of "true", "12", "1.5", "word": what it would be in TOML.
Value value_of_text(const std::string& text);
std::string value_text(const Value& value);

// What no key can see alone.
Status check_settings(const Settings& settings);

// The environment's part: overrides are applied and noted.
Status apply_environment(const Source& source, Config* config);

// The two forms of text.
Result<Config> parse_toml(const Source& source);
Result<Config> parse_wrf_namelist(const Source& source);

}  // namespace weir::output
