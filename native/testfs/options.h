// SPDX-License-Identifier: Apache-2.0
// The options of a mount as `name=value`, at the mount and while it runs: their names, units and
// meaning, in one table.
#pragma once

#include <string>
#include <string_view>

#include "testfs/state.h"

namespace weir::testfs {

enum class When { mounting, running };

// Sets one option from its text. False with a message when the name or the value makes no sense, or
// when it cannot be changed any more.
[[nodiscard]] bool set_option(State& state, std::string_view text, When when, std::string* message);

// The values of a mount for which nothing was said: no latency, no limit, page cache as the kernel
// has it.
void set_defaults(Options& options);

// The options as members of a JSON object, in the units in which they are given.
[[nodiscard]] std::string options_json(const Options& options);

}  // namespace weir::testfs
