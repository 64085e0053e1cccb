// SPDX-License-Identifier: Apache-2.0
// File-name patterns as of fnmatch(3) without flags and in the C locale: * ? [a-z] [!a-z]
// [[:digit:]] and \ before a character. libc's own function is not used: it depends on the
// program's locale and may allocate.
#pragma once

#include "base/text.h"

namespace weir::rules {

bool fits(base::Text pattern, base::Text text);

// A pattern with what makes the usual ones quick: what stands before its first and after its last
// wildcard.
struct Pattern {
  base::Text text;                // empty: matches everything
  uint32_t head = 0;              // bytes at its beginning that stand for themselves
  uint32_t tail = 0;              // bytes at its end that do, behind the last *
  bool simple = false;            // head, one *, tail; or head alone
  bool star = false;              // with simple: there is a *

  bool given() const { return text.size != 0; }
  bool matches(base::Text name) const;
};

Pattern prepare(base::Text text);

}  // namespace weir::rules
