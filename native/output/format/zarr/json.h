// SPDX-License-Identifier: Apache-2.0
// Pieces of JSON (RFC 8259) as metadata of Zarr are written: the bytes of a store depend on nothing
// but the stream. nlohmann/json reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::output::zarr {

std::string quoted(const std::string& text);
// The shortest that reads back as the same double; "NaN" and "Infinity" as texts, as Zarr has them.
std::string written(double number);
std::string written(const std::vector<int64_t>& list);

}  // namespace weir::output::zarr
