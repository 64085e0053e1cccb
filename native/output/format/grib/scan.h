// SPDX-License-Identifier: Apache-2.0
// The messages of a file, one after the other, without their data.
#pragma once

#include <vector>

#include "output/core/status.h"
#include "output/format/posix_file.h"

namespace weir::output::grib {

struct Message {
  int64_t offset = 0, length = 0;
  int edition = 2;
};

// Those that are complete, from the begin of the file on; what follows the last of them (a torn
// message) is left out. fails: WEIR_E_FILE; WEIR_E_FORMAT something else between two messages
Result<std::vector<Message>> scan(const PosixFile& file);

// The begin of a message: of edition 2 up to the end of section 5, of edition 1 of section 2.
Result<std::vector<char>> read_head(const PosixFile& file, const Message& message);

}  // namespace weir::output::grib
