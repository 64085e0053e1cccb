// SPDX-License-Identifier: Apache-2.0
// The statements of Fortran: one record each. Data statements reach from st_read or st_write to
// st_..._done, the others are one call.
#include "hook/fortran/fortran.h"

#include <stddef.h>
#include <string.h>

#include "hook/fortran/opening.h"
#include "hook/fortran/units.h"

using namespace weir::hook;

namespace {

using Block = FortranBlock;

struct InquireBlock {
  Block common;
  char between[104 - 48];
  const char* file;
  size_t file_size;
};
static_assert(offsetof(InquireBlock, file) == 104);

// The library's call, within which what it opens is the statement's.
template <typename Opening, typename Real>
void running_library(Opening opening, Real real) {
  if (!weir::stack::active()) return real();
  const OpeningByFortran openings(opening());
  real();
}

// The file of a FILE= specifier: trailing blanks do not count.
uint32_t file_named(const char* name, size_t size) {
  char path[4096];
  if (name == nullptr) return 0;
  while (size > 0 && name[size - 1] == ' ') --size;
  if (size == 0 || size >= sizeof path) return 0;
  memcpy(path, name, size);
  path[size] = 0;
  return weir::trace::process().names().path_id(path);
}

int32_t outcome_of(const Block& block) { return block.flags & kOutcome; }

// A statement that found its unit unconnected connected it (fort.77).
void note_opened(FortranStatement& s) {
  if (opened_below == 0) return;
  s.file = opened_below;
  connect_unit(s.library, s.unit, s.file);
}

// Statements on a unit other than OPEN, READ and WRITE.
template <typename Real>
void on_unit(Op op, Block* block, FortranLibrary* library, Real call) {
  const auto real = [&] { running_library([&] { return opening_of_data(*block); }, call); };
  if (WEIR_UNLIKELY(!recording())) return real();
  FortranStatement* s =
      begin_statement(op, block, library, block->unit, file_of_unit(library, block->unit), false);
  real();
  if (s == nullptr) return;
  note_opened(*s);
  const int32_t outcome = outcome_of(*block);
  if (op == Op::kFortranClose && outcome == kWell) disconnect_unit(library, s->unit);
  end_statement(*s, outcome, error_of(*block));
}

// A unit that a data statement of defined I/O was handed for its parent's character variable.
bool is_internal(const Block& block) {
  if ((block.flags & kDataIsInternal) != 0) return true;
  const FortranStatements& all = fortran_statements;
  for (uint32_t i = all.depth; i != 0; --i) {
    if (all.at[i].internal && all.at[i].unit == block.unit) return true;
  }
  return false;
}

template <typename Real>
void begin_data(Op op, Block* block, FortranLibrary* library, Real call) {
  const auto real = [&] { running_library([&] { return opening_of_data(*block); }, call); };
  if (WEIR_UNLIKELY(!recording())) return real();
  const bool internal = is_internal(*block);
  FortranStatement* s = begin_statement(
      op, block, library, block->unit, internal ? 0 : file_of_unit(library, block->unit), internal);
  real();
  if (s == nullptr) return;
  s->unit = block->unit;  // a character variable has got a number by now
  if (internal) return;
  note_opened(*s);
  leave_library();
}

template <typename Real>
void end_data(Block* block, Real real) {
  FortranStatement* s = find_statement(block);
  if (s == nullptr) return real();
  if (!s->internal) enter_library();
  real();
  end_statement(*s, outcome_of(*block), error_of(*block));
}

template <typename Real>
void open_unit(OpenBlock* open, FortranLibrary* library, Real call) {
  const auto real = [&] { running_library([&] { return opening_of(*open); }, call); };
  if (WEIR_UNLIKELY(!recording())) return real();
  const bool new_unit = (open->common.flags & kOpenHasNewUnit) != 0;
  const uint32_t before = new_unit ? 0 : file_of_unit(library, open->common.unit);
  FortranStatement* s = begin_statement(Op::kFortranOpen, &open->common, library,
                                        new_unit ? -1 : open->common.unit, before, false);
  real();
  if (s == nullptr) return;
  const int32_t outcome = outcome_of(open->common);
  if (outcome == kWell) {
    if (new_unit && open->new_unit != nullptr) s->unit = *open->new_unit;
    note_opened(*s);
  } else if ((open->common.flags & kOpenHasFile) != 0) {
    s->file = file_named(open->file, open->file_size);
  }
  end_statement(*s, outcome, error_of(open->common));
}

template <typename Real>
void inquire(InquireBlock* inquiry, FortranLibrary* library, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const bool by_file = (inquiry->common.flags & kInquireHasFile) != 0;
  const int32_t unit = by_file ? -1 : inquiry->common.unit;
  FortranStatement* s = begin_statement(Op::kFortranInquire, &inquiry->common, library, unit,
                                        by_file ? 0 : file_of_unit(library, unit), false);
  real();
  if (s == nullptr) return;
  if (by_file) s->file = file_named(inquiry->file, inquiry->file_size);
  end_statement(*s, outcome_of(inquiry->common), error_of(inquiry->common));
}

// call flush(unit), older than the statement; without a unit it means all.
template <typename Real>
void flush_call(bool all, int32_t unit, FortranLibrary* library, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const Block block{0, unit, nullptr, 0, 0, nullptr, nullptr};
  FortranStatement* s = begin_statement(Op::kFortranFlush, &block, library, block.unit,
                                        all ? 0 : file_of_unit(library, unit), false);
  real();
  if (s != nullptr) end_statement(*s, kWell, 0);
}

}  // namespace

// A hook that passes its library and the call there on to one of the shapes above.
#define WEIR_SHAPED(symbol, argument, shape, ...)   \
  FortranLibrary* library = fortran_library(bound); \
  shape(__VA_ARGS__, library, [&] { WEIR_BOUND_REAL(symbol)(argument); });

WEIR_OPTIONAL_HOOK(void, _gfortran_st_open, OpenBlock* block) {
  WEIR_BOUND(_gfortran_st_open);
  WEIR_SHAPED(_gfortran_st_open, block, open_unit, block)
}
WEIR_OPTIONAL_HOOK(void, _gfortran_st_inquire, InquireBlock* block) {
  WEIR_BOUND(_gfortran_st_inquire);
  WEIR_SHAPED(_gfortran_st_inquire, block, inquire, block)
}

#define WEIR_STATEMENT(shape, symbol, op)                 \
  WEIR_OPTIONAL_HOOK(void, symbol, FortranBlock* block) { \
    WEIR_BOUND(symbol);                                   \
    WEIR_SHAPED(symbol, block, shape, Op::op, block)      \
  }
WEIR_STATEMENT(begin_data, _gfortran_st_read, kFortranRead)
WEIR_STATEMENT(begin_data, _gfortran_st_write, kFortranWrite)
WEIR_STATEMENT(on_unit, _gfortran_st_close, kFortranClose)
WEIR_STATEMENT(on_unit, _gfortran_st_rewind, kFortranRewind)
WEIR_STATEMENT(on_unit, _gfortran_st_backspace, kFortranBackspace)
WEIR_STATEMENT(on_unit, _gfortran_st_endfile, kFortranEndfile)
WEIR_STATEMENT(on_unit, _gfortran_st_flush, kFortranFlush)
WEIR_STATEMENT(on_unit, _gfortran_st_wait, kFortranWait)
WEIR_STATEMENT(on_unit, _gfortran_st_wait_async, kFortranWait)

#define WEIR_FLUSH(symbol, integer)                                                    \
  WEIR_OPTIONAL_HOOK(void, symbol, integer* unit) {                                    \
    WEIR_BOUND(symbol);                                                                \
    const bool all = unit == nullptr;                                                  \
    WEIR_SHAPED(symbol, unit, flush_call, all, all ? -1 : static_cast<int32_t>(*unit)) \
  }
WEIR_FLUSH(_gfortran_flush_i4, int32_t)
WEIR_FLUSH(_gfortran_flush_i8, int64_t)

#define WEIR_DATA_END(symbol)                                 \
  WEIR_OPTIONAL_HOOK(void, symbol, FortranBlock* block) {     \
    WEIR_BOUND(symbol);                                       \
    end_data(block, [&] { WEIR_BOUND_REAL(symbol)(block); }); \
  }
WEIR_DATA_END(_gfortran_st_read_done)
WEIR_DATA_END(_gfortran_st_write_done)
