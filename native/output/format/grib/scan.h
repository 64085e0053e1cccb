// SPDX-License-Identifier: Apache-2.0
// The messages of a file, one after the other, without their data.
#pragma once

#include <optional>
#include <vector>

#include "output/core/status.h"
#include "output/format/posix_file.h"

namespace weir::output::grib {

struct Extent {
  int64_t offset = 0, length = 0;
};

struct Message {
  int64_t offset = 0, length = 0;
  int edition = 2;
  // Of several fields in one message of edition 2: sections 1 to 7 of this field, which it may
  // share with others. Empty: the message has one field.
  std::vector<Extent> sections = {};
};

// All of a message; of one of several fields a message that has it alone.
Result<std::vector<char>> read_message(const PosixFile& file, const Message& message);

// Where the next message begins: here, or behind what fills the one before up to 120 octets, which
// is zeros, or behind the heading of a bulletin, which is text. Null: nowhere.
Result<std::optional<int64_t>> find_message(const PosixFile& file, int64_t from);

// Those that are complete, from the begin of the file on; what follows the last of them (a torn
// message) is left out, and so are headings of bulletins and zeros that fill messages up. fails:
// WEIR_E_FILE; WEIR_E_FORMAT
// something else between two messages
Result<std::vector<Message>> scan(const PosixFile& file);

// Whether what follows the last message, from this byte on, is the end of its bulletin, what fills
// it up, or nothing.
Result<bool> is_end(const PosixFile& file, int64_t from);

// The message with its sections 1 to 4 (of edition 1: 1 and 2) as they are and no data: what
// ecCodes needs to answer what it is of, without reading the data.
Result<std::vector<char>> read_without_data(const PosixFile& file, const Message& message);

// The begin of a message: of edition 2 up to the end of section 5, of edition 1 of section 2.
Result<std::vector<char>> read_head(const PosixFile& file, const Message& message);

}  // namespace weir::output::grib
