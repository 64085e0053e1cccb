// SPDX-License-Identifier: Apache-2.0
// Where the numbers of a product are in section 4 of edition 2: each template has an order of its
// own, and ecCodes knows them.
#pragma once

#include <cstdint>

namespace weir::output::grib {

// Octets from the begin of section 4, from 0; -1: the template has no such number.
struct ProductPlaces {
  int64_t generating = -1;  // type of the generating process; more about it follows
  int64_t unit = -1, step = -1;
  int64_t first_surface = -1, second_surface = -1;
  int64_t member = -1;
  int64_t interval = -1;  // its end; what describes it follows, to the end of the template
  int64_t process = -1;   // over time
};

// Of a template (code table 4.0). One that ecCodes does not know has none.
const ProductPlaces& places_of_product(int64_t number);

}  // namespace weir::output::grib
