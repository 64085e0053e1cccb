// SPDX-License-Identifier: Apache-2.0
// Latitudes of Gaussian grids.
#pragma once

#include <cstdint>
#include <vector>

namespace weir::output {

// The `ny` latitudes in degrees, north to south: arcsines of the roots of the Legendre polynomial
// of degree ny, to the last bits of a double. Source: Newton's method on the three-term recurrence
// (Abramowitz & Stegun 22.7.10, first guess 22.16.6).
std::vector<double> gaussian_latitudes(int64_t ny);

}  // namespace weir::output
