// SPDX-License-Identifier: Apache-2.0
#include "hook/fortran/opening.h"

#include <strings.h>

namespace weir::hook {
namespace {

// A specifier's value: any case, trailing blanks do not count.
bool says(const char* text, size_t size, const char* word) {
  if (text == nullptr) return false;
  while (size > 0 && text[size - 1] == ' ') --size;
  return size == strlen(word) && strncasecmp(text, word, size) == 0;
}

rules::Access access_of(const OpenBlock& open) {
  if ((open.common.flags & kOpenHasAccess) != 0) {
    if (says(open.access, open.access_size, "direct")) return rules::Access::kDirect;
    if (says(open.access, open.access_size, "stream")) return rules::Access::kStream;
  }
  return rules::Access::kSequential;  // APPEND is of gfortran alone, and sequential too
}

// Unless it says so, a sequential file is formatted and any other is not.
rules::Form form_of(const OpenBlock& open, rules::Access access) {
  if ((open.common.flags & kOpenHasForm) != 0) {
    if (says(open.form, open.form_size, "formatted")) return rules::Form::kFormatted;
    if (says(open.form, open.form_size, "unformatted")) return rules::Form::kUnformatted;
  }
  return access == rules::Access::kSequential ? rules::Form::kFormatted : rules::Form::kUnformatted;
}

}  // namespace

stack::FortranOpening opening_of(const OpenBlock& open) {
  const bool new_unit = (open.common.flags & kOpenHasNewUnit) != 0;
  const rules::Access access = access_of(open);
  return {true, new_unit ? -1 : open.common.unit, access, form_of(open, access)};
}

stack::FortranOpening opening_of_data(const FortranBlock& block) {
  const bool formatted =
      (block.flags & (kDataIsListDirected | kDataHasFormat | kDataHasNamelist)) != 0;
  return {true, block.unit, rules::Access::kSequential,
          formatted ? rules::Form::kFormatted : rules::Form::kUnformatted};
}

}  // namespace weir::hook
