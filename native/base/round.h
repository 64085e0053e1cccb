// SPDX-License-Identifier: Apache-2.0
// Multiples of a unit: of a page, of a block.
#pragma once

#include <stdint.h>

namespace weir::base {

constexpr uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }
constexpr uint64_t round_down(uint64_t n, uint64_t to) { return n / to * to; }

}  // namespace weir::base
