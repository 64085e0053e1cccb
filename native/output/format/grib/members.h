// SPDX-License-Identifier: Apache-2.0
// Members of ensembles in edition 1: where they are is a matter of the centre's local definition,
// which ecCodes knows.
#pragma once

#include <map>
#include <vector>

#include "output/format/grib/reader.h"

namespace weir::output::grib {

class Members1 {
 public:
  // Sets the member of a message, and takes it out of what else it says of its product.
  // head: its begin.
  Status find(const PosixFile& file, const Message& message, std::span<const char> head,
              Identity* id);
  // Where a field has members from 1 on, what has number 0 of the same product is one of them.
  static void number_zeros(std::vector<Identity>* identities);

 private:
  struct Place {
    int64_t number = -1, ensemble = 0;
    int64_t at = -1, bytes = 0;  // in `product`
  };
  Result<Place> ask(const PosixFile& file, const Message& message, std::span<const char> head);
  std::map<std::vector<char>, Place> known_;
};

}  // namespace weir::output::grib
