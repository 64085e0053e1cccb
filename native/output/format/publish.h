// SPDX-License-Identifier: Apache-2.0
// A complete file gets its final name, where a file or a Zarr store of a run before may be: at no
// moment has the name anything that is not complete.
#pragma once

#include <string>

#include "output/core/status.h"

namespace weir::output {

// `replace`: what has the name goes; else it is an error that something has it.
// fails: WEIR_E_FILE; also when a directory is in the way that is no Zarr store.
Status publish_file(const std::string& temporary, const std::string& path, bool replace);
// A file or store that is not to have a name.
Status discard_file(const std::string& temporary);

}  // namespace weir::output
