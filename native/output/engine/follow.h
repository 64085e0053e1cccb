// SPDX-License-Identifier: Apache-2.0
// Existing::kAppend: a file of a run before goes on with this run's frames.
#pragma once

#include <optional>
#include <string>

#include "output/cf/describe.h"

namespace weir::output {

// How many records the file of that name has, which a frame at `time_s` (nullopt: of a file that
// is being taken over) is to follow. 0: there is no such file, or it has none. Only the calling
// rank looks.
// fails: WEIR_E_FORMAT the file is not what the stream would write; WEIR_E_FILE its last record is
//   not before the frame.
Result<int64_t> records_to_follow(const Format& format, const StreamFile& stream,
                                  const std::string& path, std::optional<double> time_s);

}  // namespace weir::output
