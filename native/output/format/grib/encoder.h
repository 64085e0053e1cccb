// SPDX-License-Identifier: Apache-2.0
// Makes the messages of a variable. ecCodes makes and checks the header of each once; later records
// take a copy of it, and packing is simple.h's, or for CCSDS simple.h's and libaec's. Every other
// packing, and values that simple.h leaves to it, are ecCodes'. Times are put in later (clock.h).
#pragma once

#include <memory>
#include <vector>

#include "output/format/grib/clock.h"
#include "output/format/grib/plan.h"
#include "output/format/grib/simple.h"

namespace weir::output::grib {

// What ecCodes is given where there is no value: a number that no field has.
constexpr double kGap = -1e30;

class Encoder {
 public:
  // Makes the header of the first message. fails: WEIR_E_FORMAT a key that ecCodes refuses, with
  // its place, the field and what ecCodes said.
  static Result<std::unique_ptr<Encoder>> make(Plan plan);

  const Plan& plan() const { return plan_; }
  // The same in all its messages.
  const TimePlaces& times() const { return times_; }
  // Appends the message of this level; `values` has plan().points of them.
  // fails: WEIR_E_VALUE infinite ones; WEIR_E_FORMAT what ecCodes refuses
  Status encode(size_t level, const void* values, std::vector<char>* to);
  // The same by ecCodes alone, for comparison.
  Status encode_by_library(size_t level, const void* values, std::vector<char>* to);
  // Sections 0 to 5 of edition 2, or a whole message of edition 1.
  Result<const std::vector<char>*> header(size_t level);

 private:
  explicit Encoder(Plan plan) : plan_(std::move(plan)) {}
  Status explain(const Status& status, const std::string& place) const;
  Status set_all(Handle& handle, const FormatKeys& keys) const;
  Status set_parameter(Handle& handle) const;
  Status add_named_grid();
  Status make_base();
  Status by_library(size_t level, const void* values, bool with_missing, std::vector<char>* to);
  Status append(const std::vector<char>& header, const void* values, const Range& range,
                const Scale& scale, std::vector<char>* to);
  Status append_ccsds(const char* section5, const void* values, int64_t count, const Scale& scale,
                      std::vector<char>* to);

  Plan plan_;
  TimePlaces times_;
  std::vector<char> base_;  // a message of the first level
  std::vector<std::vector<char>> headers_;  // by level, those that were needed
  std::vector<char> bitmap_, present_, samples_;
  std::vector<double> doubles_;
};

}  // namespace weir::output::grib
