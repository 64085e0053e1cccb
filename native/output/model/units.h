// SPDX-License-Identifier: Apache-2.0
// Whether two texts of units mean the same: CF writes "kg m-2 s-1", ecCodes "kg m**-2 s**-1". What
// is compared is the product of powers of SI base units with its factor; nothing is converted.
#pragma once

#include <optional>
#include <string>

namespace weir::output {

bool knows_units(const std::string& units);

// Null: one of them has a word that is not known here, and their letters differ.
std::optional<bool> same_units(const std::string& a, const std::string& b);

}  // namespace weir::output
