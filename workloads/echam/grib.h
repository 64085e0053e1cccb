// SPDX-License-Identifier: Apache-2.0
// Records as GRIB 2 messages: by the encoder of the output library, or by ecCodes alone. The
// messages of simple packing and CCSDS are the same.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "fields.h"
#include "output/format/grib/encoder.h"

struct grib_handle;

namespace echam {

struct EncoderOptions {
  Grid grid;
  int bits = 16;
  std::string packing;  // of ecCodes, such as grid_simple or grid_ccsds
};

class Encoder {
 public:
  using Variables = std::vector<weir::output::writer::Variable>;
  virtual ~Encoder() = default;
  // The bytes hold until the next call. Phase "encode" of weir's trace.
  virtual weir::output::Result<std::span<const char>> encode(int step, int variable, int level,
                                                             std::span<const double> values) = 0;
  // name: weir, which is for these variables alone, or eccodes.
  static weir::output::Result<std::unique_ptr<Encoder>> make(const std::string& name,
                                                             const EncoderOptions& options,
                                                             const Variables& variables);
};

}  // namespace echam
