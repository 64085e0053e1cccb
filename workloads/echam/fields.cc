// SPDX-License-Identifier: Apache-2.0
#include "fields.h"

#include "workload.h"

namespace echam {
namespace {

constexpr size_t kNoise = 1 << 16;

int levels_of(int variable) {
  switch (variable % 8) {
    case 0: return 47;
    case 3: return 1 + variable * 7 % 31;
    case 5: return 5;
    default: return 1;
  }
}

}  // namespace

std::vector<weir::output::writer::Variable> variables(int count, int files) {
  std::vector<weir::output::writer::Variable> all;
  for (int v = 0; v < count; ++v) all.push_back({v, v % files, levels_of(v)});
  return all;
}

Values::Values() : noise_(kNoise) {
  for (size_t i = 0; i < kNoise; ++i)
    noise_[i] = static_cast<double>(workload_word(9, i) >> 40) * 0x1p-24;
}

void Values::fill(int step, int variable, int level, int64_t first,
                  std::span<double> values) const {
  const uint64_t begin =
      workload_word(8, (static_cast<uint64_t>(step) << 32) + static_cast<uint64_t>(variable) * 64 +
                           static_cast<uint64_t>(level)) +
      static_cast<uint64_t>(first);
  const double mean = 200.0 + variable, slope = 1e-3;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = mean + slope * static_cast<double>(first + static_cast<int64_t>(i)) +
                30.0 * noise_[(begin + i) % kNoise];
}

}  // namespace echam
