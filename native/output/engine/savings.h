// SPDX-License-Identifier: Apache-2.0
// What packing, rounding and compression made of the fields of a file, for verbose and the trace.
#pragma once

#include <string>

#include "output/cf/describe.h"
#include "output/format/format.h"

namespace weir::output {

class Team;

// [collective over the file's owners] Prints on stderr "weir: <what>", and a line for each field:
// "field 'ta': 12.600 MB in 3.100 MB (24.6 %), 6 to 9 bits kept (7.2 on average)". Nothing for
// formats that store values as they are.
Status report_savings(Team& owners, const File& file, const StreamFile& stream,
                      const std::string& what);

// The same into the trace (Event::kClose), of what the calling owner wrote. name: of the stream.
void trace_savings(const File& file, const StreamFile& stream, const std::string& name);

}  // namespace weir::output
