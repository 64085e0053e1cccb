// SPDX-License-Identifier: Apache-2.0
#include "testfs/api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <memory>
#include <string>

#include "testfs/options.h"
#include "testfs/report.h"
#include "testfs/state.h"

namespace {

using namespace weir::testfs;

struct Unmap {
  void operator()(State* state) const { munmap(state, sizeof(State)); }
};
using Opened = std::unique_ptr<State, Unmap>;

}  // namespace

#define WEIR_EXPORT __attribute__((visibility("default")))

WEIR_EXPORT char* weir_testfs_stats(const char* state_path, int with_reset) {
  const Opened state(open_state(state_path));
  if (state == nullptr) return nullptr;
  const std::string json = stats_json(*state);
  if (with_reset) reset(*state);
  return strdup(json.c_str());
}

WEIR_EXPORT char* weir_testfs_control(const char* state_path, const char* option) {
  const Opened state(open_state(state_path));
  if (state == nullptr) return strdup(strerror(errno));
  std::string message;
  return set_option(*state, option, When::running, &message) ? nullptr : strdup(message.c_str());
}

WEIR_EXPORT void weir_testfs_free(char* text) { free(text); }
