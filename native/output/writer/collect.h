// SPDX-License-Identifier: Apache-2.0
// A collector's output step. The model supplies what only the model knows, as callbacks: how the
// parts of a variable are gathered and put in the order of a record (transposition), and how a
// record is encoded.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "output/core/status.h"
#include "output/writer/writer.h"

namespace weir::output::writer {

struct Variable {
  int number = 0, file = 0, records = 0;
};

struct Callbacks {
  // All records of a variable, in order, one after the other. The values stay the model's, until
  // the next call.
  std::function<Result<std::span<const double>>(const Variable&)> gather;
  // One record of it, from its share of these values. The bytes stay the model's, until the next
  // call.
  std::function<Result<std::span<const char>>(const Variable&, int record,
                                              std::span<const double> values)>
      encode;
  // Of the bytes of a record, where they stay longer.
  Lifetime lifetime = Lifetime::kCall;
};

// [collective over the collectors] Gather, encode, append, end the step. After a failure the step
// is ended nevertheless.
Status collect(Writer& writer, const std::vector<Variable>& variables, const Callbacks& model);

}  // namespace weir::output::writer
