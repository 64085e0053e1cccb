// SPDX-License-Identifier: Apache-2.0
// A catalogue as bytes: for servers, and to find ranks that define other things than rank 0. What
// is each rank's own (blocks, indices, halos, lon/lat) is left out: plans carry it.
#pragma once

#include <span>
#include <vector>

#include "output/core/status.h"
#include "output/model/catalogue.h"

namespace weir::output {

std::vector<char> encode_catalogue(const Catalogue& catalogue);

// Believes nothing: every count, index and enumeration is checked against what is there, and the
// result passes check_structure.
Result<Catalogue> decode_catalogue(std::span<const char> bytes);

// Fine when both define the same, apart from what is each rank's own. Otherwise the first
// difference in words: "field 'u', attribute 'units': 'K' on rank 0 and 'degC' on rank 3".
Status compare_catalogues(const Catalogue& of_rank_0, const Catalogue& mine, int my_rank);

}  // namespace weir::output
