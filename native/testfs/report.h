// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "testfs/state.h"

namespace weir::testfs {

// All counters as one JSON object. Names of files are bytes as they are, with what JSON wants
// escaped.
[[nodiscard]] std::string stats_json(const State& state);

}  // namespace weir::testfs
