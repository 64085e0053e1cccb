// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "layers/machinery/rules/rules.h"

namespace weir::rules {

bool parse_environment(Rules* out, const char** mistake) {
  const char* text = getenv("WEIR_RULES");
  *out = {};
  *mistake = nullptr;
  return text == nullptr || *text == 0 || parse(base::text(text), out, mistake);
}

}  // namespace weir::rules
