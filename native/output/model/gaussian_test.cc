// SPDX-License-Identifier: Apache-2.0
#include "output/model/gaussian.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weir::output {
namespace {

TEST(gaussian, known_latitudes) {
  // Degree 2: the roots are 1/sqrt(3).
  EXPECT_NEAR(gaussian_latitudes(2)[0], std::asin(1 / std::sqrt(3.0)) * 180 / M_PI, 1e-13);
  // N32 and N80, as in the tables of ERA-40 and ERA-Interim.
  EXPECT_NEAR(gaussian_latitudes(64)[0], 87.8637988, 1e-7);
  EXPECT_NEAR(gaussian_latitudes(64)[31], 1.3953069, 1e-7);
  EXPECT_NEAR(gaussian_latitudes(160)[0], 89.1415194, 1e-7);
}

TEST(gaussian, every_latitude_is_a_root) {
  for (int n : {2, 4, 48, 640}) {
    for (double latitude : gaussian_latitudes(n)) {
      // std::legendre near a root, on both sides: the sign changes within 1e-12.
      const double x = std::sin(latitude * M_PI / 180), h = 1e-12;
      EXPECT_LE(std::legendre(static_cast<unsigned>(n), x - h) *
                    std::legendre(static_cast<unsigned>(n), std::min(x + h, 1.0)),
                0)
          << n << " " << latitude;
    }
  }
}

}  // namespace
}  // namespace weir::output
