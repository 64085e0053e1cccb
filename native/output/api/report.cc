// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "output/api/context.h"
#include "output/model/text.h"

namespace weir::api {

int report(const output::Status& status, weir_error* err) {
  if (!err) return status.code();
  err->code = status.code();
  const std::string& text = status.message();
  const size_t size = output::whole_characters(text, sizeof err->message - 1);
  std::memcpy(err->message, text.data(), size);
  err->message[size] = '\0';
  return status.code();
}

}  // namespace weir::api

const char* weir_status_name(int code) {
  constexpr const char* kNames[] = {"WEIR_OK",         "WEIR_E_ARGUMENT",      "WEIR_E_CONFIG",
                                    "WEIR_E_ORDER",    "WEIR_E_DECOMPOSITION", "WEIR_E_MISSING",
                                    "WEIR_E_FILE",     "WEIR_E_FORMAT",        "WEIR_E_MEMORY",
                                    "WEIR_E_REMOTE",   "WEIR_E_LOST",          "WEIR_E_MPI",
                                    "WEIR_E_INTERNAL", "WEIR_E_VALUE"};
  constexpr int kCount = sizeof kNames / sizeof *kNames;
  return code >= 0 && code < kCount ? kNames[code] : "unknown code";
}
