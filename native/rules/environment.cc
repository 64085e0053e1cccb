// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "rules/rules.h"

namespace weir::rules {

bool parse_environment(Rules* out, const char** mistake) {
  const char* text = getenv("WEIR_RULES");
  *out = {};
  *mistake = nullptr;
  return text == nullptr || *text == 0 || parse(base::text(text), out, mistake);
}

int node_tasks() {
  const char* text = getenv("WEIR_NODE_TASKS");
  int64_t n = 0;
  if (text == nullptr || !base::parse_number(base::text(text), &n) || n < 0 || n > INT32_MAX) return 0;
  return static_cast<int>(n);
}

}  // namespace weir::rules
