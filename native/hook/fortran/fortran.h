// SPDX-License-Identifier: Apache-2.0
// Statements of gfortran programs, as they call libgfortran.so.5 (gcc 8 and later). Decides which
// statement is running in a thread and what is known of it; what a unit is connected to is in
// fortran_units.h.
#pragma once

#include <stdint.h>

#include "hook/fortran/library.h"
#include "hook/observe.h"

namespace weir::hook {

// The beginning that all parameter blocks of libgfortran share.
struct FortranBlock {
  int32_t flags;
  int32_t unit;
  const char* source;
  int32_t line;
  size_t message_size;
  char* message;
  const int32_t* iostat;
};
static_assert(sizeof(FortranBlock) == 48);

enum FortranFlag : int32_t {
  kOutcome = 3,  // written by the library: 0 well, 1 error, 2 end of file, 3 end of record
  kHasIostat = 1 << 5,
  kOpenHasFile = 1 << 8,
  kOpenHasNewUnit = 1 << 23,
  kInquireHasFile = 1 << 14,
  kDataIsInternal = 1 << 14,
};
enum FortranOutcome : int32_t { kWell = 0, kFailed = 1, kEndOfFile = 2, kEndOfRecord = 3 };

struct alignas(64) FortranStatement {
  const FortranBlock*
      block;  // on the program's stack, alive until the statement ends; null: no statement
  uint64_t start;
  uint64_t payload;
  FortranLibrary* library;
  uint32_t file;
  int32_t unit;
  Op op;
  uint8_t flags_before;  // of thread_log
  bool internal;         // a character variable is the unit: no I/O, no record
};

// Statements can run within one another: a function in an I/O list, procedures of defined I/O.
// at[0] is always empty.
inline constexpr uint32_t kDeepestStatement = 15;
struct FortranStatements {
  uint32_t depth;
  FortranStatement at[kDeepestStatement + 1];
};
extern WEIR_OWN WEIR_THREAD FortranStatements fortran_statements;

// The running statement, when it is the block's; else null.
inline FortranStatement* running(const FortranBlock* block) {
  FortranStatement& s = fortran_statements.at[fortran_statements.depth];
  return WEIR_LIKELY(s.block == block) ? &s : nullptr;
}

// From here on the thread is in the library. Null: nested too deep, not followed.
FortranStatement* begin_statement(Op op, const FortranBlock* block, FortranLibrary* library,
                                  int32_t unit, uint32_t file, bool internal);
// The statement of the block, or null. Statements above it never ended (longjmp, C++ exceptions)
// and are dropped.
WEIR_COLD FortranStatement* find_outer_statement(const FortranBlock* block);
inline FortranStatement* find_statement(const FortranBlock* block) {
  FortranStatement* s = running(block);
  return WEIR_LIKELY(s != nullptr) ? s : find_outer_statement(block);
}
// The program runs on, with the statement still open / the library goes on. What a function in an
// I/O list does by itself is the program's doing: nested, but not below.
inline void leave_library() { trace::thread_log.flags_below = wire::kNested; }
inline void enter_library() { trace::thread_log.flags_below = wire::kBelow | wire::kNested; }
// Keeps the record and drops the statement, which must be the innermost one. outcome: of the block,
// or a FortranOutcome.
void end_statement(FortranStatement& s, int32_t outcome, uint8_t error);
// The statements that the end of the program interrupts become records that failed.
void end_all_statements();

// errno of a failed statement that asked for iostat; 0 when there is none.
inline uint8_t error_of(const FortranBlock& block) {
  if (WEIR_LIKELY((block.flags & kOutcome) != kFailed || (block.flags & kHasIostat) == 0 ||
                  block.iostat == nullptr))
    return 0;
  const int32_t status = *block.iostat;
  return status > 0 && status < 255 ? static_cast<uint8_t>(status) : 0;
}

}  // namespace weir::hook
