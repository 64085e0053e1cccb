// SPDX-License-Identifier: Apache-2.0
// The statements of Fortran: one record each. Data statements reach from st_read or st_write to st_..._done, the others are one call.
#include "hook/fortran.h"

#include <stddef.h>
#include <string.h>

#include "hook/fortran_units.h"

using namespace weir::hook;

namespace {

using Block = FortranBlock;

struct OpenBlock {
  Block common;
  int32_t record_length;
  size_t file_size;
  const char* file;
  char between[296 - 72];
  const int32_t* new_unit;
};
static_assert(offsetof(OpenBlock, file) == 64 && offsetof(OpenBlock, new_unit) == 296);

struct InquireBlock {
  Block common;
  char between[104 - 48];
  const char* file;
  size_t file_size;
};
static_assert(offsetof(InquireBlock, file) == 104);

// The file of a FILE= specifier: trailing blanks do not count.
uint32_t file_named(const char* name, size_t size) {
  char path[4096];
  if (name == nullptr) return 0;
  while (size > 0 && name[size - 1] == ' ') --size;
  if (size == 0 || size >= sizeof path) return 0;
  memcpy(path, name, size);
  path[size] = 0;
  return weir::record::process().names().path_id(path);
}

int32_t outcome_of(const Block& block) { return block.flags & kOutcome; }

// A statement that found its unit unconnected connected it (fort.77).
void note_opened(FortranStatement& s) {
  if (opened_below == 0) return;
  s.file = opened_below;
  connect_unit(s.unit, s.file);
}

// Statements on a unit other than OPEN, READ and WRITE.
template <typename Real>
void on_unit(Op op, Block* block, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  FortranStatement* s = begin_statement(op, block, block->unit, file_of_unit(block->unit), false);
  real();
  if (s == nullptr) return;
  note_opened(*s);
  const int32_t outcome = outcome_of(*block);
  if (op == Op::kFortranClose && outcome == kWell) disconnect_unit(s->unit);
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
void begin_data(Op op, Block* block, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const bool internal = is_internal(*block);
  FortranStatement* s = begin_statement(op, block, block->unit, internal ? 0 : file_of_unit(block->unit), internal);
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
void open_unit(OpenBlock* open, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const bool new_unit = (open->common.flags & kOpenHasNewUnit) != 0;
  const uint32_t before = new_unit ? 0 : file_of_unit(open->common.unit);
  FortranStatement* s = begin_statement(Op::kFortranOpen, &open->common, new_unit ? -1 : open->common.unit, before, false);
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
void inquire(InquireBlock* inquiry, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const bool by_file = (inquiry->common.flags & kInquireHasFile) != 0;
  const int32_t unit = by_file ? -1 : inquiry->common.unit;
  FortranStatement* s = begin_statement(Op::kFortranInquire, &inquiry->common, unit, by_file ? 0 : file_of_unit(unit), false);
  real();
  if (s == nullptr) return;
  if (by_file) s->file = file_named(inquiry->file, inquiry->file_size);
  end_statement(*s, outcome_of(inquiry->common), error_of(inquiry->common));
}

// call flush(unit), older than the statement; without a unit it means all.
template <typename Real>
void flush_call(bool all, int32_t unit, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const Block block{0, all ? -1 : unit, nullptr, 0, 0, nullptr, nullptr};
  FortranStatement* s = begin_statement(Op::kFortranFlush, &block, block.unit, all ? 0 : file_of_unit(unit), false);
  real();
  if (s != nullptr) end_statement(*s, kWell, 0);
}

}  // namespace

WEIR_HOOK(void, _gfortran_st_open, OpenBlock* block) {
  open_unit(block, [&] { WEIR_REAL(_gfortran_st_open)(block); });
}
WEIR_HOOK(void, _gfortran_st_inquire, InquireBlock* block) {
  inquire(block, [&] { WEIR_REAL(_gfortran_st_inquire)(block); });
}
WEIR_HOOK(void, _gfortran_flush_i4, int32_t* unit) {
  flush_call(unit == nullptr, unit == nullptr ? 0 : *unit, [&] { WEIR_REAL(_gfortran_flush_i4)(unit); });
}
WEIR_HOOK(void, _gfortran_flush_i8, int64_t* unit) {
  flush_call(unit == nullptr, unit == nullptr ? 0 : static_cast<int32_t>(*unit), [&] { WEIR_REAL(_gfortran_flush_i8)(unit); });
}

#define WEIR_STATEMENT(shape, symbol, op) \
  WEIR_HOOK(void, symbol, FortranBlock* block) { shape(Op::op, block, [&] { WEIR_REAL(symbol)(block); }); }
WEIR_STATEMENT(begin_data, _gfortran_st_read, kFortranRead)
WEIR_STATEMENT(begin_data, _gfortran_st_write, kFortranWrite)
WEIR_STATEMENT(on_unit, _gfortran_st_close, kFortranClose)
WEIR_STATEMENT(on_unit, _gfortran_st_rewind, kFortranRewind)
WEIR_STATEMENT(on_unit, _gfortran_st_backspace, kFortranBackspace)
WEIR_STATEMENT(on_unit, _gfortran_st_endfile, kFortranEndfile)
WEIR_STATEMENT(on_unit, _gfortran_st_flush, kFortranFlush)
WEIR_STATEMENT(on_unit, _gfortran_st_wait, kFortranWait)
WEIR_STATEMENT(on_unit, _gfortran_st_wait_async, kFortranWait)

WEIR_HOOK(void, _gfortran_st_read_done, FortranBlock* block) {
  end_data(block, [&] { WEIR_REAL(_gfortran_st_read_done)(block); });
}
WEIR_HOOK(void, _gfortran_st_write_done, FortranBlock* block) {
  end_data(block, [&] { WEIR_REAL(_gfortran_st_write_done)(block); });
}
