// SPDX-License-Identifier: Apache-2.0
#include "output/writer/distribute.h"

#include <algorithm>
#include <numeric>

namespace weir::output::writer {

std::vector<int> distribute(const std::vector<int64_t>& weights, int collectors) {
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  std::vector<int64_t> loads(static_cast<size_t>(collectors));
  std::vector<int> owners(weights.size());
  for (const size_t variable : order) {
    const auto least = std::ranges::min_element(loads);
    owners[variable] = static_cast<int>(least - loads.begin());
    *least += weights[variable];
  }
  return owners;
}

}  // namespace weir::output::writer
