// SPDX-License-Identifier: Apache-2.0
// A group that takes a file over goes on with a copy of its own: the group before may only have
// slept, and still have the file open. What it writes when it wakes goes into a file that nobody
// will give a name.
#pragma once

#include <functional>
#include <string>

#include "output/core/status.h"

namespace weir::output {

// The temporary name of a file that has been taken over `generation` times:
// "directory/.name.weir-part", "directory/.name.weir-part.2", ...
std::string temporary_path(const std::string& path, int generation);

// A file with its journal, or a Zarr store. `on_pause` is called now and then.
// fails: WEIR_E_FILE, also when the file does not stop changing.
Status inherit_file(const std::string& from, const std::string& to,
                    const std::function<void()>& on_pause);

// What is left of the generations before, when the file has its final name.
Status discard_before(const std::string& path, int generation);

}  // namespace weir::output
