// SPDX-License-Identifier: Apache-2.0
// The hooks of mpi_calls.def, in C and in the spellings of Fortran. All arguments are words:
// handles, numbers and addresses travel in one register each, whichever implementation it is. When
// nobody looks the call goes straight through.
#include "layers/cache/between.h"
#include "hook/mpi/mpi.h"
#include "hook/mpi/sync.h"

namespace weir::hook {
namespace {

using wire::MpiRoutine;

constexpr Form form_of(Form form, MpiRoutine routine, int8_t words) {
  return form.with([&](Form& f) { f.routine = routine, f.words = words; });
}

#define WEIR_MPI_CALL(Name, name, NAME, words, ...) \
  constexpr Form kForm_##Name = form_of(__VA_ARGS__, MpiRoutine::k##Name, words);
#include "hook/mpi/calls.def"
#undef WEIR_MPI_CALL

// Barriers matter to files that ranks on several nodes share, too.
template <MpiRoutine routine>
WEIR_INLINE bool somebody_looks() {
  if (base::load_relaxed(&mpi_events) != 0) return true;
  return routine == MpiRoutine::kBarrier && base::load_relaxed(&cache::shared_between_nodes) != 0;
}

}  // namespace
}  // namespace weir::hook

using namespace weir::hook;

#define WEIR_WORDS_1 uintptr_t a0
#define WEIR_WORDS_2 WEIR_WORDS_1, uintptr_t a1
#define WEIR_WORDS_3 WEIR_WORDS_2, uintptr_t a2
#define WEIR_WORDS_4 WEIR_WORDS_3, uintptr_t a3
#define WEIR_WORDS_5 WEIR_WORDS_4, uintptr_t a4
#define WEIR_WORDS_6 WEIR_WORDS_5, uintptr_t a5
#define WEIR_WORDS_7 WEIR_WORDS_6, uintptr_t a6
#define WEIR_WORDS_8 WEIR_WORDS_7, uintptr_t a7
#define WEIR_WORDS_9 WEIR_WORDS_8, uintptr_t a8
#define WEIR_WORDS_10 WEIR_WORDS_9, uintptr_t a9
#define WEIR_WORDS_12 WEIR_WORDS_10, uintptr_t a10, uintptr_t a11
#define WEIR_NAMES_1 a0
#define WEIR_NAMES_2 WEIR_NAMES_1, a1
#define WEIR_NAMES_3 WEIR_NAMES_2, a2
#define WEIR_NAMES_4 WEIR_NAMES_3, a3
#define WEIR_NAMES_5 WEIR_NAMES_4, a4
#define WEIR_NAMES_6 WEIR_NAMES_5, a5
#define WEIR_NAMES_7 WEIR_NAMES_6, a6
#define WEIR_NAMES_8 WEIR_NAMES_7, a7
#define WEIR_NAMES_9 WEIR_NAMES_8, a8
#define WEIR_NAMES_10 WEIR_NAMES_9, a9
#define WEIR_NAMES_12 WEIR_NAMES_10, a10, a11

#define WEIR_MPI_IN_C(Name, words)                                          \
  WEIR_OPTIONAL_HOOK(int, MPI_##Name, WEIR_WORDS_##words) {                 \
    WEIR_BOUND(MPI_##Name);                                                 \
    if (WEIR_LIKELY(!somebody_looks<weir::wire::MpiRoutine::k##Name>()))    \
      return WEIR_BOUND_REAL(MPI_##Name)(WEIR_NAMES_##words);               \
    uintptr_t given[MpiCall::kMostWords] = {WEIR_NAMES_##words};            \
    return mpi_called(kForm_##Name, false, given,                           \
                      reinterpret_cast<void*>(WEIR_BOUND_REAL(MPI_##Name)), \
                      __builtin_return_address(0));                         \
  }
#define WEIR_MPI_IN_FORTRAN(symbol, Name, words)                                            \
  WEIR_OPTIONAL_HOOK(void, symbol, WEIR_WORDS_##words, uintptr_t error) {                   \
    WEIR_BOUND(symbol);                                                                     \
    if (WEIR_LIKELY(!somebody_looks<weir::wire::MpiRoutine::k##Name>()))                    \
      return WEIR_BOUND_REAL(symbol)(WEIR_NAMES_##words, error);                            \
    uintptr_t given[MpiCall::kMostWords] = {WEIR_NAMES_##words, error};                     \
    mpi_called(kForm_##Name, true, given, reinterpret_cast<void*>(WEIR_BOUND_REAL(symbol)), \
               nullptr);                                                                    \
  }
#define WEIR_MPI_CALL(Name, name, NAME, words, ...)      \
  WEIR_MPI_IN_C(Name, words)                             \
  WEIR_MPI_IN_FORTRAN(mpi_##name##_, Name, words)        \
  WEIR_MPI_IN_FORTRAN(mpi_##name##__, Name, words)       \
  WEIR_MPI_IN_FORTRAN(mpi_##name, Name, words)           \
  WEIR_MPI_IN_FORTRAN(MPI_##NAME, Name, words)           \
  WEIR_MPI_IN_FORTRAN(mpi_##name##_f08_, Name, words)
#include "hook/mpi/calls.def"
