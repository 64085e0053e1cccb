// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "hook/fortran/fortran.h"

namespace weir::hook {

WEIR_THREAD FortranStatements fortran_statements;

namespace {

void drop_innermost() {
  FortranStatements& all = fortran_statements;
  FortranStatement& s = all.at[all.depth--];
  trace::thread_log.flags_below = s.flags_before;
  s.block = nullptr;
}

}  // namespace

FortranStatement* begin_statement(Op op, const FortranBlock* block, FortranLibrary* library,
                                  int32_t unit, uint32_t file, bool internal) {
  FortranStatements& all = fortran_statements;
  // A block below this function's frame, or used anew, is of a statement that was left by longjmp
  // or an exception.
  const char here = 0;
  while (all.depth != 0) {
    const FortranBlock* innermost = all.at[all.depth].block;
    if (innermost != block &&
        reinterpret_cast<uintptr_t>(innermost) > reinterpret_cast<uintptr_t>(&here))
      break;
    drop_innermost();
  }
  if (all.depth == kDeepestStatement) return nullptr;
  FortranStatement& s = all.at[all.depth + 1];
  s = {block, 0, 0, library, file, unit, op, trace::thread_log.flags_below, internal};
  base::store_relaxed(&all.depth, all.depth + 1);
  if (internal) return &s;
  enter_library();
  opened_below = 0;
  s.start = base::ticks();
  return &s;
}

FortranStatement* find_outer_statement(const FortranBlock* block) {
  FortranStatements& all = fortran_statements;
  uint32_t at = all.depth;
  while (at != 0 && all.at[at].block != block) --at;
  if (at == 0) return nullptr;
  while (all.depth > at) drop_innermost();
  return &all.at[at];
}

void end_statement(FortranStatement& s, int32_t outcome, uint8_t error) {
  Call call{s.op,           Layer::fortran, 0, error,
            s.file,         s.start,        0, static_cast<uint64_t>(s.unit) & kUnknownOffset,
            clip(s.payload)};
  const bool internal = s.internal;
  const uint8_t flags_before = s.flags_before;
  drop_innermost();
  if (internal) return;
  call.end = base::ticks();
  if (outcome == kEndOfRecord) call.flags = wire::kShort;
  else if (outcome != kWell) call.flags = wire::kError;
  // Also within the library's call of a defined I/O procedure, a statement is the program's own.
  trace::thread_log.flags_below = flags_before & wire::kNested;
  record_call(call);
  trace::thread_log.flags_below = flags_before;
}

void end_all_statements() {
  FortranStatements& all = fortran_statements;
  while (all.depth != 0) end_statement(all.at[all.depth], kFailed, 0);
}

}  // namespace weir::hook

// An error without iostat or err ends the program from within its statement. Exit handlers then run
// outside of any.
WEIR_HOOK(void, exit, int status) {
  if (WEIR_UNLIKELY(weir::hook::fortran_statements.depth != 0)) {
    if (weir::hook::recording()) weir::hook::end_all_statements();
  }
  WEIR_REAL(exit)(status);
}
