// SPDX-License-Identifier: Apache-2.0
// libweir-output-check.so: what `weir output check` calls. The same parser as libweir's, without MPI.
#include <cstdlib>
#include <cstring>

#include "output/config/explain.h"

namespace {

using namespace weir::output;

Result<std::string> checked(const char* path, int64_t ranks) {
  Result<Source> source = load_source(path);
  if (!source.ok()) return source.status();
  Result<Config> config = parse_config(*source);
  if (!config.ok()) return config.status();
  if (Status status = check_ranks(config->settings, ranks); !status.ok()) {
    return Status(WEIR_E_CONFIG, config->source + ": " + status.message());
  }
  return explain(*config, ranks);
}

}  // namespace

// A weir_status; *text gets the explanation or the error's message, to be given to weir_output_check_free. ranks: 0 for not known.
extern "C" WEIR_OUTPUT_API int weir_output_check(const char* path, int64_t ranks, char** text) {
  Result<std::string> result = checked(path, ranks);
  const std::string& words = result.ok() ? *result : result.status().message();
  *text = strdup(words.c_str());
  return result.status().code();
}

extern "C" WEIR_OUTPUT_API void weir_output_check_free(char* text) { std::free(text); }
