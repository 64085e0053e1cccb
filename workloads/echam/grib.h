// SPDX-License-Identifier: Apache-2.0
// Records as GRIB 2 messages, by ecCodes.
#pragma once

#include <memory>
#include <span>

#include "fields.h"

struct grib_handle;

namespace echam {

class Encoder {
 public:
  // packing: of ecCodes, such as grid_simple or grid_ccsds.
  weir::output::Status make(const Grid& grid, int bits, const char* packing);
  // The bytes hold until the next call. Phase "encode" of weir's trace.
  weir::output::Result<std::span<const char>> encode(int step, int variable, int level,
                                                     std::span<const double> values);

 private:
  struct Release {
    void operator()(grib_handle* handle) const;
  };
  std::unique_ptr<grib_handle, Release> message_;
};

}  // namespace echam
