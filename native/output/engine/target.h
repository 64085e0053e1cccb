// SPDX-License-Identifier: Apache-2.0
// Where a file goes, and what may be there: who writes it makes its directory, has its lock, and
// replaces nothing that is no file of output.
#pragma once

#include <string>

#include "output/engine/file_lock.h"
#include "output/model/catalogue.h"

namespace weir::output {

// Relative paths begin in `directory`; with none they stay relative.
std::string absolute_path(const std::string& directory, const std::string& path);

// Whether a file may be published under this name: there is nothing, or a regular file or Zarr
// store that may be replaced.
// fails: WEIR_E_FILE.
Status check_target(const std::string& path, Existing existing);

// Makes directories, takes the lock of `owner` (see FileLock::take), and checks the target. A file
// that begins anew: `generation` of its temporary name, under which what a job before has left is
// removed, so that no process that still has it open writes into the new one; else -1.
Status prepare_target(const std::string& path, const std::string& owner, Existing existing,
                      int generation, FileLock* lock);

}  // namespace weir::output
