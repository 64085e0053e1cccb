// SPDX-License-Identifier: Apache-2.0
// A phase of a scope in weir's trace: for what no hook records, such as one-sided communication.
#pragma once

#include <weir/phase.h>

namespace weir::output::writer {

class Phase {
 public:
  explicit Phase(const char* name) : name_(name) { weir_phase_begin(name_); }
  ~Phase() { weir_phase_end(name_); }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  const char* const name_;
};

}  // namespace weir::output::writer
