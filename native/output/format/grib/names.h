// SPDX-License-Identifier: Apache-2.0
// Where names of CMIP and of CF are those of another quantity, or of another level, in ecCodes.
#pragma once

#include <string>

namespace weir::output::grib {

// What a name is in CMIP, as a standard name; "": ecCodes has no other meaning for it.
std::string usual_name(const std::string& name);

// The parameter of a field near the surface (of CMIP: tas, uas, ...) that has no axis of levels;
// 0: the name is none of these, or the standard name says another quantity.
int near_surface(const std::string& name, const std::string& standard_name);

// The parameter of a standard name that ecCodes has for another one; 0: as ecCodes has it.
int parameter_of_standard_name(const std::string& standard_name);

// Why the parameter that ecCodes has for a standard name is not that quantity; "": it is.
std::string not_the_same(const std::string& standard_name, const std::string& param_id);

}  // namespace weir::output::grib
