// SPDX-License-Identifier: Apache-2.0
// Makes the messages of a variable. ecCodes makes and checks the header of each once; later records
// take a copy of it, and packing is that of simple.h, with the code of entropy.h for CCSDS. Every
// other packing, and values that these leave to it, are ecCodes'. Times are put in later (clock.h).
#pragma once

#include <memory>
#include <vector>

#include "output/format/grib/clock.h"
#include "output/format/grib/plan.h"
#include "output/format/grib/simple.h"

namespace weir::output::grib {

// What ecCodes is given where there is no value: a number that no field has.
constexpr double kGap = -1e30;

// What one thread needs while it encodes.
struct Scratch {
  std::vector<char> bitmap, present;
  std::vector<uint32_t> steps;
  std::vector<double> doubles;
};

class Encoder {
 public:
  // Makes the header of the first message. fails: WEIR_E_FORMAT a key that ecCodes refuses, with
  // its place, the field and what ecCodes said; units that are not those of the parameter.
  static Result<std::unique_ptr<Encoder>> make(Plan plan);

  const Plan& plan() const { return plan_; }
  // Of the first level, as ecCodes numbers it; 0: not known.
  int64_t parameter() const;
  // The same in all its messages.
  const TimePlaces& times() const { return times_; }
  // Appends the message of this level; `values` has plan().points of them. Several threads may do
  // so at once, each with its own scratch and levels.
  // fails: WEIR_E_VALUE infinite ones and those beyond float32; WEIR_E_FORMAT what ecCodes refuses
  // *bits: those of a packed value, 0 where ecCodes decides
  Status encode(size_t level, const void* values, Scratch* scratch, Bytes* to, int* bits = nullptr);
  // The same by ecCodes alone, for comparison.
  Status encode_by_library(size_t level, const void* values, Scratch* scratch, Bytes* to);
  // Sections 0 to 5 of edition 2, or a whole message of edition 1.
  Result<const Bytes*> header(size_t level);

 private:
  explicit Encoder(Plan plan) : plan_(std::move(plan)) {}
  Status explain(const Status& status, const std::string& place) const;
  Status wrong(const std::string& why) const { return explain({WEIR_E_FORMAT, why}, ""); }
  Status set_all(Handle& handle, const FormatKeys& keys) const;
  Status set_type_of_level(Handle& handle, const FormatKey& key) const;
  Status set_parameter(Handle& handle) const;
  Status set_standard_name(Handle& handle, const FormatKey& name) const;
  Status check_parameter(const Handle& handle) const;
  Status check_units(const Handle& handle) const;
  Status add_named_grid();
  Status make_base();
  Status keep_base(const Handle& handle);
  Range range(const void* values) const;
  Status check_range(const Range& range) const;
  Result<Handle> library_handle(size_t level) const;
  Status by_library(size_t level, const void* values, const Range& range, Scratch* scratch,
                    Bytes* to);
  Scale scale(const void* values, int64_t count, const Range& range, Scratch* scratch) const;
  void append(const Bytes& header, const void* values, const Range& range, const Scale& scale,
              Scratch* scratch, Bytes* to) const;
  void append_ccsds(const char* section5, const void* values, int64_t count, const Scale& scale,
                    Scratch* scratch, Bytes* to) const;

  Plan plan_;
  TimePlaces times_;
  Bytes base_;                  // a message of the first level
  std::vector<Bytes> headers_;  // by level, those that were needed
};

}  // namespace weir::output::grib
