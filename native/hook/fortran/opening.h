// SPDX-License-Identifier: Apache-2.0
// What a Fortran statement is about to open: reported to the rules while libgfortran runs it. A
// statement on a unit that is not connected opens fort.N by itself.
#pragma once

#include <stddef.h>

#include "hook/fortran/fortran.h"
#include "layers/machinery/stack/table.h"

namespace weir::hook {

// st_parameter_open of libgfortran.so.5 (gcc 8 to 14), as far as it is read.
struct OpenBlock {
  FortranBlock common;
  int32_t record_length;
  size_t file_size;
  const char* file;
  const char* status;
  size_t status_size;
  size_t access_size;
  const char* access;
  const char* form;
  size_t form_size;
  char between[296 - 120];
  const int32_t* new_unit;
};
static_assert(offsetof(OpenBlock, file) == 64 && offsetof(OpenBlock, access) == 96 &&
              offsetof(OpenBlock, form) == 104);
static_assert(offsetof(OpenBlock, new_unit) == 296);

enum FortranOpeningFlag : int32_t {
  kOpenHasAccess = 1 << 10,
  kOpenHasForm = 1 << 11,
  kDataIsListDirected = 1 << 7,
  kDataHasFormat = 1 << 12,
  kDataHasNamelist = 1 << 15,
};

stack::FortranOpening opening_of(const OpenBlock& open);
stack::FortranOpening opening_of_data(const FortranBlock& block);

// Within its life the thread's openings are those of the statement.
class OpeningByFortran {
 public:
  explicit OpeningByFortran(const stack::FortranOpening& opening)
      : before_(stack::fortran_opening) {
    stack::fortran_opening = opening;
  }
  ~OpeningByFortran() { stack::fortran_opening = before_; }
  OpeningByFortran(const OpeningByFortran&) = delete;
  OpeningByFortran& operator=(const OpeningByFortran&) = delete;

 private:
  const stack::FortranOpening before_;
};

}  // namespace weir::hook
