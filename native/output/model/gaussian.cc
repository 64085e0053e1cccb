// SPDX-License-Identifier: Apache-2.0
#include "output/model/gaussian.h"

#include <cmath>
#include <numbers>

namespace weir::output {
namespace {

// One step of Newton's method towards a root of the Legendre polynomial of degree n.
double newton_step(int64_t n, double x) {
  double before = 1, value = x;
  for (int64_t k = 2; k <= n; k++) {
    const double next =
        (static_cast<double>(2 * k - 1) * x * value - static_cast<double>(k - 1) * before) /
        static_cast<double>(k);
    before = value;
    value = next;
  }
  const double slope = static_cast<double>(n) * (x * value - before) / (x * x - 1);
  return value / slope;
}

}  // namespace

std::vector<double> gaussian_latitudes(int64_t ny) {
  std::vector<double> latitudes(static_cast<size_t>(ny));
  for (int64_t j = 0; j < ny / 2; j++) {
    double x = std::cos(std::numbers::pi * (static_cast<double>(j) + 0.75) /
                        (static_cast<double>(ny) + 0.5));
    for (int iteration = 0; iteration < 10; iteration++) {
      const double step = newton_step(ny, x);
      x -= step;
      if (std::abs(step) < 1e-16) break;
    }
    const double latitude = std::asin(x) * 180 / std::numbers::pi;
    latitudes[static_cast<size_t>(j)] = latitude;
    latitudes[static_cast<size_t>(ny - 1 - j)] = -latitude;
  }
  return latitudes;
}

}  // namespace weir::output
