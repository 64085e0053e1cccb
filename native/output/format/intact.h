// SPDX-License-Identifier: Apache-2.0
// Whether a complete file is still what was written, before it gets its final name. Errors are
// WEIR_E_FILE and name the file, what is there and what was expected.
#pragma once

#include <string>
#include <string_view>

#include "output/format/posix_file.h"

namespace weir::output {

Result<std::string> read_all(const PosixFile& file);
// fails: it has gone
Result<PosixFile> open_written(const std::string& path);
Status not_intact(const std::string& path, const std::string& found, const std::string& expected);
Status expect_bytes(const PosixFile& file, int64_t offset, std::string_view expected);
Status expect_length(const PosixFile& file, int64_t least_bytes);

}  // namespace weir::output
